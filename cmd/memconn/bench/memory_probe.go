package bench

import (
	"bufio"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memconn/memconn/connector"
)

// procStatus is where Linux tells what memory a process has.
const procStatus = "/proc/self/status"

// errNoProc says that the system does not tell.
var errNoProc = errors.New("this system has no " + procStatus)

// residentMemory gives the bytes of memory the process has now and had at most
// (VmRSS, VmHWM).
func residentMemory() (now, peak int64, err error) {
	found, err := procBytes(procStatus, "VmRSS", "VmHWM")
	return found["VmRSS"], found["VmHWM"], err
}

// availableMemory gives the bytes that the machine can still hand out.
func availableMemory() (int64, error) {
	found, err := procBytes("/proc/meminfo", "MemAvailable")
	return found["MemAvailable"], err
}

// procBytes reads amounts out of a file of lines "Name:   123 kB".
func procBytes(file string, names ...string) (map[string]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, errNoProc
	}
	defer f.Close()
	found := map[string]int64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if !slices.Contains(names, name) {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return nil, err
		}
		found[name] = kib << 10
	}
	for _, name := range names {
		if found[name] == 0 {
			return nil, errNoProc
		}
	}
	return found, nil
}

// forgetPeak lets VmHWM begin anew, where the kernel allows it.
func forgetPeak() bool { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) == nil }

// probeInterval is how often the account is looked at. The greatest resident
// memory does not depend on it: the kernel keeps that itself.
const probeInterval = 20 * time.Millisecond

// memoryPeaks is what a probe has seen.
type memoryPeaks struct {
	resident  int64 // of the process, bytes
	accounted int64 // of the pool, without what is set aside for the embedded engine
	exact     bool  // resident is the kernel's own peak
}

// probe watches the memory of a connector's process until stopped.
type probe struct {
	quit chan struct{}
	done sync.WaitGroup

	exact bool
	peaks memoryPeaks // of the goroutine until it is done
	err   error
}

func startProbe(c *connector.Connector) *probe {
	p := &probe{quit: make(chan struct{}), exact: forgetPeak()}
	p.done.Go(func() {
		tick := time.NewTicker(probeInterval)
		defer tick.Stop()
		for {
			p.look(c)
			select {
			case <-p.quit:
				p.look(c)
				return
			case <-tick.C:
			}
		}
	})
	return p
}

func (p *probe) look(c *connector.Connector) {
	p.peaks.accounted = max(p.peaks.accounted, c.Pool().Usage().Used-c.Options().EngineBytes)
	now, peak, err := residentMemory()
	if err != nil {
		p.err = err
	}
	if p.exact {
		now = peak
	}
	p.peaks.resident = max(p.peaks.resident, now)
}

// stop ends the probe and gives what it saw.
func (p *probe) stop() (memoryPeaks, error) {
	close(p.quit)
	p.done.Wait()
	p.peaks.exact = p.exact
	return p.peaks, p.err
}
