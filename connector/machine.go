package connector

import (
	"os"
	"strconv"
	"strings"
)

// assumedMemoryBytes is taken when the machine does not say how much it has.
const assumedMemoryBytes = 4 << 30

// machineMemoryBytes gives the memory that this process may use: the least of the
// machine's and its control group's.
func machineMemoryBytes() int64 {
	least := int64(0)
	consider := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	consider(memTotal("/proc/meminfo"))
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(file); err == nil {
			// "max" and absurdly large numbers both mean that there is no limit.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				consider(n)
			}
		}
	}
	if least == 0 {
		return assumedMemoryBytes
	}
	return least
}

func memTotal(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}
