// Package ipccheck looks over Arrow IPC bytes before Arrow's own decoder sees them. That decoder allocates by the counts that it
// finds, before it looks whether they can be true, and recurses into children: a few bytes could take all memory or all stack,
// which no recover catches. What passes here costs no more than its bytes allow. What else can be wrong only makes the decoder
// give an error or panic, which its callers recover.
//
// Invariants:
//
//	INV-I1 Nothing here allocates by a number that it reads.
//	INV-I2 No bytes make a function of this package panic.
package ipccheck
