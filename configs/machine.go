package configs

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory is the memory that this process may use: the smaller of the
// machine's and its control group's. It is the whole that percentages refer to.
func machineMemory() int64 {
	total := int64(4 << 30)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		total = int64(info.Totalram) * int64(info.Unit)
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// "max" and the huge number of cgroup v1 both mean "no limit".
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && limit > 0 && limit < total {
			total = limit
		}
	}
	return total
}
