package table

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

const (
	// maxReplans bounds how often a Process call that memory was refused to plans the
	// rest of its work with half as much: each refusal waits for others to give some up.
	maxReplans = 4
	// scratchToReturn is the size from which on the scratch of a sort is given back to
	// the system at once: less is not worth a collection.
	scratchToReturn = 32 << 20
)

// Sortable tells how many of the first parts Process can, with the memory that is
// free or can be freed now, sort in one run, so that the results have disjoint key
// ranges. It is at least 1 when there are parts. An unsorted table gains nothing
// from processing parts together: 1.
func Sortable(env Env, d *Definition, parts []*Part) (int, error) {
	p := &processor{env: env, def: d}
	if err := p.prepare(parts); err != nil {
		return 0, err
	}
	if len(p.fields) == 0 {
		return min(1, len(parts)), nil
	}
	limit := p.memoryLimit()
	cost := p.cost(nil)
	for n, part := range parts {
		cost = cost.plus(p.cost(part.sources(nil)))
		if n > 0 && !p.fits(cost, limit) {
			return n, nil
		}
	}
	return len(parts), nil
}

// sources appends the part's page groups to out.
func (p *Part) sources(out []source) []source {
	for g := range p.groups {
		out = append(out, source{p, g})
	}
	return out
}

// processRuns processes the page groups in runs that need limit bytes at most. A run that the pool refuses
// memory to, because others hold more than when it was planned, is planned anew
// with less. Parts that were made are returned even when a later run fails.
func (p *processor) processRuns(ctx context.Context, groups []source, limit int64) ([]*Part, error) {
	var out []*Part
	for replans := 0; len(groups) > 0; {
		n := p.runLength(groups, limit)
		cells := p.progress.cells
		made, err := p.processRun(ctx, groups[:n])
		if errors.Is(err, spill.ErrBudget) && len(made) == 0 && len(p.fields) > 0 && n > 1 && replans < maxReplans {
			replans++
			limit = min(limit, p.need(p.cost(groups[:n]))) / 2
			p.progress.cells = cells
			continue
		}
		out = append(out, made...)
		if err != nil {
			return out, err
		}
		groups = groups[n:]
	}
	return out, nil
}

// runLength says how many of the groups are processed next. It is all of them when
// there is no order to establish or when sorting them at once fits the memory; else
// as many as fit and make a full part.
func (p *processor) runLength(groups []source, limit int64) int {
	if len(p.fields) == 0 || p.fits(p.cost(groups), limit) {
		return len(groups)
	}
	cost := p.cost(groups[:1])
	for n := 1; n < len(groups); n++ {
		cost = cost.plus(p.cost(groups[n : n+1]))
		if !p.fits(cost, limit) || cost.total > p.env.targetBytes() {
			return n
		}
	}
	return len(groups)
}

// memoryLimit is what one run may plan with: three quarters of what others cannot
// refuse to give up. The rest is left for readers and for writes in flight.
func (p *processor) memoryLimit() int64 {
	u := p.env.Pool.Usage()
	return max(u.Budget-u.Reserved-u.Pinned-u.Unspilled, (u.Budget-u.ByClass[spill.ClassEngine])/8) / 4 * 3
}

// sortCost estimates the memory that sorting some page groups pins.
type sortCost struct {
	groups, rows, total, keys int64
	longest                   int // rows of a page group
	columns                   []int64
}

func (p *processor) cost(groups []source) sortCost {
	c := sortCost{groups: int64(len(groups)), columns: make([]int64, len(p.def.Columns))}
	for _, s := range groups {
		c.rows += int64(s.rows())
		c.longest = max(c.longest, s.rows())
		for i := range p.def.Columns {
			if j := s.part.columnIndex(p.def.Columns[i].ID); j >= 0 {
				c.columns[i] += s.part.cols[j].pages[s.group].Bytes()
			}
		}
	}
	for _, i := range p.keyCols {
		c.keys += c.columns[i]
	}
	for _, n := range c.columns {
		c.total += n
	}
	return c
}

func (c sortCost) plus(o sortCost) sortCost {
	sum := sortCost{
		groups: c.groups + o.groups, rows: c.rows + o.rows, total: c.total + o.total, keys: c.keys + o.keys,
		longest: max(c.longest, o.longest), columns: slices.Clone(o.columns),
	}
	for i := range c.columns {
		sum.columns[i] += c.columns[i]
	}
	return sum
}

// shift numbers the rows of the page groups: each has room for 1<<shift.
func (c sortCost) shift() uint8 { return uint8(bits.Len(uint(max(c.longest, 1) - 1))) }

// fits tells whether page groups can be sorted in one run: the memory suffices and
// the rows have numbers of 32 bits.
func (p *processor) fits(c sortCost, limit int64) bool {
	return p.need(c) <= limit && c.groups<<c.shift() <= math.MaxUint32
}

// need is the greater of sorting (keys and scratch) and gathering (permutation, a
// column, pages in flight).
func (p *processor) need(c sortCost) int64 {
	var widest int64
	for _, n := range c.columns {
		widest = max(widest, n)
	}
	page := widest / max(1, c.rows/int64(p.env.PageRows))
	sorting := c.keys + sortidx.ArgsortScratchBytes(int(c.rows), p.fields)
	return max(sorting, 4*c.rows+widest+2*int64(p.env.workers())*page)
}
