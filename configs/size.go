package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are tried longest first, so that MiB is not read as B.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"KB", 1e3},
	{"B", 1},
}

// ParseBytes reads a size: a plain number of bytes or a number with one of the
// units B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
// Units match in any case.
func ParseBytes(text string) (int64, error) {
	number, scale := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if len(number) > len(u.suffix) && strings.EqualFold(number[len(number)-len(u.suffix):], u.suffix) {
			number, scale = strings.TrimSpace(number[:len(number)-len(u.suffix)]), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v*scale >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: write bytes as 1073741824, 512MiB or 2GB", text)
	}
	return int64(v * scale), nil
}

// parseShare reads a size or a percentage of whole.
func parseShare(text string, whole int64) (int64, error) {
	percent, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	if !ok {
		return ParseBytes(text)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if err != nil || math.IsNaN(v) || v <= 0 || v > 100 {
		return 0, fmt.Errorf("%q is not a share: write 60%% (above 0, at most 100) or a size such as 4GiB", text)
	}
	return int64(float64(whole) * v / 100), nil
}
