// Package rounds says how many rounds the random tests take: few, so that a package's
// tests stay under a minute with the race detector, or many when TEST_LONG is set. Only
// tests import it.
//
// Invariants:
//
//	INV-N1 With TEST_LONG a test tries at least what it tries without.
package rounds
