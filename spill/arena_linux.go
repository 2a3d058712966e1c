package spill

import "golang.org/x/sys/unix"

// adviseNoHugePages asks for plain pages, so that touching a byte makes one unit resident and not two megabytes.
func adviseNoHugePages(mem []byte) error { return unix.Madvise(mem, unix.MADV_NOHUGEPAGE) }
