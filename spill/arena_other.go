//go:build !linux

package spill

// adviseNoHugePages has nothing to do where pages are never joined behind our back.
func adviseNoHugePages([]byte) error { return nil }
