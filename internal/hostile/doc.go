// Package hostile makes bytes that claim more than they hold, to show that a decoder
// allocates by what is there and not by what is claimed. Only tests import it.
//
// Invariants:
//
//	INV-H1 A decoder that believes a claim fails the test and does not end the process.
package hostile
