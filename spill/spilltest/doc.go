// Package spilltest has what tests of pages need: Arrow values of every stored type, and pages made from them.
//
// It makes no temporary files and keeps no state; it is imported by tests only.
package spilltest
