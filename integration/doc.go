// Package integration tests memconn from outside: it builds the real binary,
// starts it, speaks to it over REST, Arrow Flight and Flight SQL, kills it and
// starts it again. It also holds the test of the layers.
//
// Invariants:
//
//   - INV-I1 No file here imports a package of memconn: what these tests use is
//     what users have.
//   - INV-I2 Every process that a test starts is stopped by that test, and
//     listens on loopback only.
package integration
