//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpuTime gives the processor time that this process has used, all its threads
// together, the peer's included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
