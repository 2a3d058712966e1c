package sparse

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// maxIntervals bounds the intervals of a probe; neighbours are joined beyond it.
const maxIntervals = 4096

// Probe is a constraint on sort columns as intervals of keys, in ascending order.
// It is immutable and safe for concurrent use.
type Probe struct{ intervals []interval }

// interval is a set of keys by two prefixes. Keys belong if they are at or after
// low (or after everything that begins with low, if after), and before high (or at
// most something that begins with high, if through).
type interval struct {
	low, high      []byte
	after, through bool
}

// reachedBy reports whether a key of a group can be at or after the low end, given
// the group's last key, which may be cut.
func (iv *interval) reachedBy(last []byte) bool {
	n := min(len(last), len(iv.low))
	c := bytes.Compare(last[:n], iv.low[:n])
	if c == 0 && iv.after {
		// Equal as far as both go: only a cut key can go on beyond low.
		return len(last) < len(iv.low)
	}
	return c >= 0
}

// startsBy reports whether a key of a group can be at or before the high end, given
// the group's first key, which may be cut.
func (iv *interval) startsBy(first []byte) bool {
	n := min(len(first), len(iv.high))
	c := bytes.Compare(first[:n], iv.high[:n])
	if c == 0 && !iv.through {
		return len(first) < len(iv.high)
	}
	return c <= 0
}

// NewProbe prepares domains for parts sorted by fields; see [Index.Candidates] for
// their meaning. A type without an order is an error.
func NewProbe(fields []sortidx.Field, domains []predicate.Domain) (*Probe, error) {
	encoder, err := sortidx.NewEncoder(fields)
	if err != nil {
		return nil, fmt.Errorf("prepare a search of the sort columns: %w", err)
	}
	b := probeBuilder{fields: fields, encoder: encoder}
	return &Probe{intervals: b.build(domains)}, nil
}

type probeBuilder struct {
	fields  []sortidx.Field
	encoder *sortidx.Encoder
}

// build extends key prefixes column by column while the column is limited to
// single values and the next one is constrained as well, and ends with the ranges
// of the last column that counts.
func (b *probeBuilder) build(domains []predicate.Domain) []interval {
	prefixes := [][]byte{nil}
	for i := range b.fields {
		if !b.constrains(domains, i) {
			break
		}
		if len(prefixes) > 1 && len(prefixes)*(len(domains[i].Ranges())+1) > maxIntervals {
			break // the columns before narrow enough
		}
		points, ok := domains[i].Points()
		many := len(prefixes)*(len(points)+1) > maxIntervals
		if !ok || many || !b.constrains(domains, i+1) {
			return b.ranges(prefixes, i, domains[i])
		}
		prefixes = b.extend(prefixes, i, points, domains[i].NullAllowed())
	}
	out := make([]interval, len(prefixes))
	for i, p := range prefixes {
		out[i] = interval{low: p, high: p, through: true}
	}
	return arrange(out)
}

func (b *probeBuilder) constrains(domains []predicate.Domain, field int) bool {
	if field >= len(domains) || field >= len(b.fields) || domains[field].IsAll() {
		return false
	}
	kind, ok := predicate.KindOf(b.fields[field].Type)
	return ok && kind == domains[field].Kind()
}

func (b *probeBuilder) extend(prefixes [][]byte, field int, points []predicate.Value, null bool) [][]byte {
	var out [][]byte
	for _, p := range prefixes {
		for i := range points {
			out = append(out, b.key(p, field, &points[i]))
		}
		if null {
			out = append(out, b.key(p, field, nil))
		}
	}
	return out
}

// key gives prefix and the key bytes of one value (nil for NULL) in fresh memory.
func (b *probeBuilder) key(prefix []byte, field int, v *predicate.Value) []byte {
	return b.encoder.AppendValue(slices.Clip(prefix), field, v)
}

// ranges gives one interval for each prefix and range of d, and for NULL.
func (b *probeBuilder) ranges(prefixes [][]byte, field int, d predicate.Domain) []interval {
	var out []interval
	for _, p := range prefixes {
		for _, r := range d.Ranges() {
			out = append(out, b.interval(p, field, r))
		}
		if d.NullAllowed() {
			null := b.key(p, field, nil)
			out = append(out, interval{low: null, high: null, through: true})
		}
	}
	return arrange(out)
}

// interval turns a range of values into one of keys; a descending column swaps its
// ends. Where an end is open, NULLs on that side stay out.
func (b *probeBuilder) interval(prefix []byte, field int, r predicate.Range) interval {
	f := b.fields[field]
	low, high := r.Low, r.High
	if f.Desc {
		low, high = high, low
	}
	var iv interval
	switch {
	case low.Set:
		iv.low, iv.after = b.key(prefix, field, &low.Value), !low.Inclusive
	case f.NullsFirst:
		iv.low, iv.after = b.key(prefix, field, nil), true
	default:
		iv.low = prefix
	}
	switch {
	case high.Set:
		iv.high, iv.through = b.key(prefix, field, &high.Value), high.Inclusive
	case !f.NullsFirst:
		iv.high = b.key(prefix, field, nil)
	default:
		iv.high, iv.through = prefix, true
	}
	return iv
}

// arrange sorts intervals, which are disjoint, and joins neighbours if there are
// too many: what lies between them becomes a candidate, which is allowed.
func arrange(ivs []interval) []interval {
	slices.SortFunc(ivs, func(a, b interval) int {
		if c := bytes.Compare(a.low, b.low); c != 0 || a.after == b.after {
			return c
		}
		if b.after {
			return -1
		}
		return 1
	})
	if len(ivs) <= maxIntervals {
		return ivs
	}
	step := (len(ivs) + maxIntervals - 1) / maxIntervals
	var out []interval
	for part := range slices.Chunk(ivs, step) {
		joined, end := part[0], part[len(part)-1]
		joined.high, joined.through = end.high, end.through
		out = append(out, joined)
	}
	return out
}
