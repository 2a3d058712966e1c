package sparse

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// MaxKeyBytes is the length in bytes to which keys are cut.
const MaxKeyBytes = 64

// Span is the page groups [Lo, Hi) of a part.
type Span struct{ Lo, Hi int }

// Index holds the first and last key of each page group of a sorted part. It is
// immutable and safe for concurrent use.
type Index struct {
	fields []sortidx.Field
	keys   []byte   // first and last key of each group, one after the other
	ends   []uint32 // where each key ends
}

// Builder collects the keys of one part, group by group. It is for one caller at a
// time and keeps no arrays.
type Builder struct {
	x       *Index
	encoder *sortidx.Encoder
	last    []byte // uncut last key of the group before
	scratch []byte
}

// NewBuilder starts the index of a part that is sorted by fields. A type without
// an order is an error.
func NewBuilder(fields []sortidx.Field) (*Builder, error) {
	encoder, err := sortidx.NewEncoder(fields)
	if err != nil {
		return nil, fmt.Errorf("index the sort columns: %w", err)
	}
	return &Builder{x: &Index{fields: slices.Clone(fields)}, encoder: encoder}, nil
}

// AddGroup appends the next page group: its sort columns in the order of the
// fields, one row or more each, sorted. The arrays are borrowed.
func (b *Builder) AddGroup(cols []arrow.Array) {
	rows := cols[0].Len()
	if rows == 0 {
		panic("BUG: sparse: a page group without rows")
	}
	b.scratch = b.encoder.Append(b.scratch[:0], cols, 0)
	if bytes.Compare(b.scratch, b.last) < 0 {
		panic(fmt.Sprintf("BUG: sparse: page group %d begins before the one before ends", b.x.Groups()))
	}
	b.x.appendKey(b.scratch)
	b.last = b.encoder.Append(b.last[:0], cols, rows-1)
	if bytes.Compare(b.last, b.scratch) < 0 {
		panic(fmt.Sprintf("BUG: sparse: page group %d is not sorted", b.x.Groups()))
	}
	b.x.appendKey(b.last)
}

// Finish gives the index; the builder must not be used afterwards.
func (b *Builder) Finish() *Index {
	b.x.keys, b.x.ends = slices.Clip(b.x.keys), slices.Clip(b.x.ends)
	return b.x
}

func (x *Index) appendKey(key []byte) {
	x.keys = append(x.keys, key[:min(len(key), MaxKeyBytes)]...)
	x.ends = append(x.ends, uint32(len(x.keys)))
}

func (x *Index) key(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = x.ends[i-1]
	}
	return x.keys[start:x.ends[i]]
}

func (x *Index) first(group int) []byte { return x.key(2 * group) }
func (x *Index) last(group int) []byte  { return x.key(2*group + 1) }

// Groups gives the number of page groups.
func (x *Index) Groups() int { return len(x.ends) / 2 }

// MemBytes gives the bytes of memory that x holds.
func (x *Index) MemBytes() int64 {
	return int64(unsafe.Sizeof(*x)) + int64(len(x.fields))*int64(unsafe.Sizeof(sortidx.Field{})) +
		int64(len(x.keys)+4*len(x.ends))
}

// Candidates gives the page groups that can hold rows whose sort columns lie in
// the domains: domains[i] is for field i, missing ones at the end constrain
// nothing, nor do domains of another kind than the field's. nil means no group.
// To search many parts, use a [Probe].
func (x *Index) Candidates(domains []predicate.Domain) []Span {
	p, err := NewProbe(x.fields, domains)
	if err != nil {
		// The fields were checked when the index was built or decoded.
		panic(fmt.Sprintf("BUG: sparse: %v", err))
	}
	return x.AppendSpans(nil, p)
}

// AppendSpans appends what Candidates gives for a prepared constraint, whose
// fields must be those of the index, and returns the extended slice.
func (x *Index) AppendSpans(dst []Span, p *Probe) []Span {
	start := len(dst)
	groups := x.Groups()
	from := 0
	for i := range p.intervals {
		iv := &p.intervals[i]
		// Intervals ascend, so no group before the last span's is of interest.
		lo := from + sort.Search(groups-from, func(g int) bool { return iv.reachedBy(x.last(from + g)) })
		hi := x.end(iv, lo)
		if lo == groups {
			break
		}
		if lo >= hi {
			continue
		}
		if n := len(dst); n > start && dst[n-1].Hi >= lo {
			dst[n-1].Hi = max(dst[n-1].Hi, hi)
		} else {
			dst = append(dst, Span{lo, hi})
		}
		from = lo
	}
	return dst
}

// end gives the first group from lo on that begins after iv. Most spans are short,
// so it doubles its steps before it halves them.
func (x *Index) end(iv *interval, lo int) int {
	groups, step := x.Groups(), 1
	for lo+step <= groups && iv.startsBy(x.first(lo+step-1)) {
		lo += step
		step *= 2
	}
	n := min(step, groups-lo)
	return lo + sort.Search(n, func(g int) bool { return !iv.startsBy(x.first(lo + g)) })
}
