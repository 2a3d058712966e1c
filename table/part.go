package table

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/bloom"
	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/ndv"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/sparse"
	"github.com/memconn/memconn/spill"
)

// Part is an immutable set of rows: page groups and their indexes. It is made
// by Builder.Finish, NewMemoryPart, Open or Process and owned by its caller, who
// gives it up with Drop. All methods are safe for concurrent use.
type Part struct {
	id        uint64
	tableID   uint64
	rows      int64
	shift     uint8 // page groups hold 1<<shift rows
	groups    int
	processed bool
	// Numbers of the first and last commit that the rows come from; see SetSequence.
	seqLo, seqHi uint64
	partition    string // of all rows; see Partition
	written      written

	ids  []ColumnID // of cols, apart so that look-ups touch little memory
	cols []partColumn

	// Of a sorted part; empty otherwise.
	sortedBy   []SortKey
	sortFields []sortidx.Field
	sortCols   []int // positions in cols
	sparse     *sparse.Index
	words      *orderWords // of sortCols[0]; may be nil

	pool       *spill.Pool
	file       *spill.PartFile // nil: memory only
	indexMem   *spill.Reservation
	memBytes   int64
	indexBytes int64

	obsolete atomic.Bool
	dropOnce sync.Once
}

// partColumn is one stored column of a part.
type partColumn struct {
	id      ColumnID
	field   arrow.Field    // name at the time of writing, declared type
	storage arrow.DataType // type of the pages' arrays
	kind    predicate.Kind
	ordered bool          // kind is valid: zone maps exist and filters apply
	pages   []*spill.Page // one for each page group
	zones   *minmax.Column
	// distinct counts the values and estimate is its result; counted is false, and they are
	// not known, in parts of older programs. A sketch that is large beside its column is
	// atRest: only in the file, once that is whole.
	distinct *ndv.Sketch
	estimate int64
	counted  bool
	atRest   bool
	// Bloom filters; both nil when the column is not indexed. A nil element:
	// no non-NULL value in that group.
	blooms    []*spill.Page
	partBloom *spill.Page
}

// ID is the part's number, unique in its store.
func (p *Part) ID() uint64 { return p.id }

// TableID is the ID of the definition the part was made for.
func (p *Part) TableID() uint64 { return p.tableID }

// Rows is the number of rows.
func (p *Part) Rows() int64 { return p.rows }

// Groups is the number of page groups.
func (p *Part) Groups() int { return p.groups }

// PageRows is the number of rows of each page group but the last.
func (p *Part) PageRows() int { return 1 << p.shift }

// Processed tells whether Process made the part.
func (p *Part) Processed() bool { return p.processed }

// Sequence is the range of the numbers of the commits that the rows come from:
// catalog versions, first and last. Zeros stand for a part older than every number.
func (p *Part) Sequence() (lo, hi uint64) { return p.seqLo, p.seqHi }

// SetSequence says from which commits the rows come. It must be said before the part
// is shared, which is when the edit that publishes it knows its number; an edit that
// was not published may be followed by another with another number. Process and
// MergeSorted say it for their results.
func (p *Part) SetSequence(lo, hi uint64) {
	if lo > hi {
		panic("BUG: a part's first commit is later than its last")
	}
	p.seqLo, p.seqHi = lo, hi
}

// Durable tells whether the part has a file; false for memory parts.
func (p *Part) Durable() bool { return p.file != nil }

// Damage gives the first damage that a reader met in the part's file; nil when none
// did, and for a part without a file.
func (p *Part) Damage() error {
	if p.file == nil {
		return nil
	}
	return p.file.Damage()
}

// SortedBy returns the order of the rows, nil when they have none. Read only.
func (p *Part) SortedBy() []SortKey { return p.sortedBy }

// Columns returns the IDs of the stored columns in stored order.
func (p *Part) Columns() []ColumnID { return slices.Clone(p.ids) }

// MemBytes is what all pages, data and bloom filters, take when resident, plus
// the indexes that are always in memory.
func (p *Part) MemBytes() int64 { return p.memBytes }

// IndexBytes is the size of zone maps, sparse index and bloom filters.
func (p *Part) IndexBytes() int64 { return p.indexBytes }

// DiskBytes is the length of the part file, 0 for memory parts.
func (p *Part) DiskBytes() int64 {
	if p.file == nil {
		return 0
	}
	return p.file.Bytes()
}

// ResidentBytes is the part of MemBytes that is in memory now.
func (p *Part) ResidentBytes() int64 {
	n := p.residentIndexBytes()
	p.eachPage(func(g *spill.Page) {
		if g.Resident() {
			n += g.Bytes()
		}
	})
	return n
}

// Zone returns the zone map of a whole column. False: the part does not hold
// the column, or its type has no order.
func (p *Part) Zone(c ColumnID) (minmax.Zone, bool) {
	i := p.columnIndex(c)
	if i < 0 || p.cols[i].zones == nil {
		return minmax.Zone{}, false
	}
	return p.cols[i].zones.Whole(), true
}

// Indexed tells whether the part has bloom filters for the column.
func (p *Part) Indexed(c ColumnID) bool {
	i := p.columnIndex(c)
	return i >= 0 && p.cols[i].blooms != nil
}

// NeedsProcess tells whether Process would give this part something it lacks
// under the definition: the sort order, a bloom filter or its rate, the codec, or a
// file. What a part has beyond that, such as the filter of a dropped index, is no
// reason to write it again.
func (p *Part) NeedsProcess(d *Definition) bool {
	if p.file == nil || !slices.Equal(p.sortedBy, d.Properties.SortedBy) {
		return true
	}
	blooms := false
	for _, id := range d.Properties.IndexColumns {
		// A column that the part lacks is NULL in all rows, which needs no filter.
		stored := p.columnIndex(id) >= 0
		if stored && !p.Indexed(id) {
			return true
		}
		blooms = blooms || stored
	}
	return !p.written.fits(d, blooms)
}

// Obsolete says that the part's file is to be removed when the part is dropped.
func (p *Part) Obsolete() { p.obsolete.Store(true) }

// Drop gives the part up: its memory is freed at once, that of pages which
// readers still pin at their last unpin. The file is closed, and removed when
// Obsolete was said. Drop may be called more than once.
func (p *Part) Drop() {
	p.dropOnce.Do(func() {
		if p.file != nil && p.obsolete.Load() {
			p.file.MarkObsolete()
		}
		p.eachPage((*spill.Page).Drop)
		if p.indexMem != nil {
			p.indexMem.Release()
		}
		if p.file != nil {
			p.file.Release()
		}
	})
}

// columnIndex returns the position of a column in cols, -1 when absent.
func (p *Part) columnIndex(c ColumnID) int {
	for i, id := range p.ids {
		if id == c {
			return i
		}
	}
	return -1
}

// groupRows is the number of rows of page group g.
func (p *Part) groupRows(g int) int {
	return int(min(p.rows-int64(g)<<p.shift, 1<<p.shift))
}

// eachPage calls f for every data and bloom page.
func (p *Part) eachPage(f func(*spill.Page)) {
	for i := range p.cols {
		p.cols[i].eachPage(f)
	}
}

func (c *partColumn) eachPage(f func(*spill.Page)) {
	for _, list := range [][]*spill.Page{c.pages, c.blooms, {c.partBloom}} {
		for _, g := range list {
			if g != nil {
				f(g)
			}
		}
	}
}

// account computes the sizes once all pages and indexes are in place.
func (p *Part) account() {
	resident := p.residentIndexBytes()
	p.memBytes, p.indexBytes = resident, resident
	for i := range p.cols {
		c := &p.cols[i]
		for _, g := range c.pages {
			p.memBytes += g.Bytes()
		}
		for _, list := range [][]*spill.Page{c.blooms, {c.partBloom}} {
			for _, g := range list {
				if g != nil {
					p.memBytes += g.Bytes()
					p.indexBytes += g.Bytes()
				}
			}
		}
	}
}

// residentIndexBytes is the size of the indexes that never leave memory.
func (p *Part) residentIndexBytes() int64 {
	var n int64
	for i := range p.cols {
		if z := p.cols[i].zones; z != nil {
			n += z.MemBytes()
		}
		if !p.cols[i].atRest {
			n += p.cols[i].distinct.MemBytes()
		}
	}
	if p.sparse != nil {
		n += p.sparse.MemBytes()
	}
	if p.words != nil {
		n += p.words.memBytes()
	}
	return n
}

// viewBloom reads a pinned bloom page.
func viewBloom(blob []byte) (*bloom.Filter, error) { return bloom.View(blob) }
