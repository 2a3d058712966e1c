package table

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"

	"github.com/memconn/memconn/spill"
)

// Env is where parts live and with what effort they are made. It is passed by
// value and never changed.
type Env struct {
	// Store holds the part files. Memory parts and scans do not need it.
	Store *spill.Store
	Pool  *spill.Pool
	// PageRows is the number of rows of a page group of new parts: a power of two
	// from 1 to MaxPageRows. Parts remember theirs.
	PageRows int
	// TargetBytes bounds the page bytes of a part that Process makes; 0 means
	// DefaultTargetBytes.
	TargetBytes int64
	// Workers bounds the goroutines that one call uses; less than 1 means 1.
	Workers int
	// Log gets background remarks; nil means none.
	Log *slog.Logger
}

// DefaultTargetBytes is the size of processed parts when Env does not say.
const DefaultTargetBytes = 256 << 20

// MaxPageRows keeps row positions of a group within 24 bits, and one page of the
// widest common type below the size where loading it for one row would hurt.
const MaxPageRows = 1 << 24

func (e Env) validate() error {
	var errs []error
	if e.Pool == nil {
		errs = append(errs, errors.New("Env.Pool is nil"))
	}
	if e.PageRows < 1 || e.PageRows > MaxPageRows || e.PageRows&(e.PageRows-1) != 0 {
		errs = append(errs, fmt.Errorf("Env.PageRows is %d, want a power of two from 1 to %d", e.PageRows, MaxPageRows))
	}
	return errors.Join(errs...)
}

func (e Env) workers() int { return max(1, e.Workers) }

func (e Env) targetBytes() int64 {
	if e.TargetBytes > 0 {
		return e.TargetBytes
	}
	return DefaultTargetBytes
}

// shiftOf returns log2 of a power of two.
func shiftOf(pageRows int) uint8 { return uint8(bits.TrailingZeros32(uint32(pageRows))) }
