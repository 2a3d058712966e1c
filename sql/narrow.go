package sql

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/tree"
)

// Bounds of narrowing: it reads a little to read much less.
const (
	// minProbeRows is the least a scan must have to be worth the work.
	minProbeRows = 64 << 10
	// maxBuildRows is the most that is read to find the keys of one link.
	maxBuildRows = 512 << 10
	// buildShare: what is read is at most this part of what may be left out.
	buildShare = 4
	// maxKeys and maxKeyBytes bound a list of keys; more become a range.
	maxKeys     = 10_000
	maxKeyBytes = 1 << 20
	// maxBuilds bounds the scans that are read ahead for one statement.
	maxBuilds = 8
	// maxKeyShare: so small a part of the build table's rows filters the probing
	// table even where no index can leave out a page.
	maxKeyShare = 0.25
)

// narrowing finds the keys of small, filtered tables before the statement runs and
// lets the scans that are joined with them leave out all other rows.
type narrowing struct {
	x       *execution
	sources []*source
	rows    []int64 // that each source reads at most; -1: not yet known
	tried   []bool  // by link
	links   []tree.Link
}

// narrow narrows the sources as far as that is cheap. Every link is sound by
// itself and after others: the rows that matter stay the same.
func (x *execution) narrow(links []tree.Link, sources []*source) error {
	if len(links) == 0 {
		return nil
	}
	n := &narrowing{x: x, sources: sources, links: links, tried: make([]bool, len(links)), rows: make([]int64, len(sources))}
	for i := range n.rows {
		n.rows[i] = -1
	}
	for range maxBuilds {
		best, err := n.best()
		if err != nil || best < 0 {
			return err
		}
		if err := n.build(best); err != nil {
			return err
		}
	}
	return nil
}

// bound gives the rows that a source reads at most, from metadata.
func (n *narrowing) bound(i int) (int64, error) {
	if n.rows[i] >= 0 {
		return n.rows[i], nil
	}
	s := n.sources[i]
	if s.constraint.IsAll() && s.narrowed.IsAll() {
		n.rows[i] = s.rows
		return s.rows, nil
	}
	scan, err := s.snapshot.Scan(n.x.ctx, connector.ScanRequest{Table: s.name(), Columns: []string{}, Constraint: s.effective(), Limit: -1})
	if err != nil {
		return 0, err
	}
	defer scan.Close()
	n.rows[i] = scan.EstimatedRows()
	return n.rows[i], nil
}

// best gives the link that costs least; -1 when none is worth its cost.
func (n *narrowing) best() (int, error) {
	best, least := -1, int64(maxBuildRows)+1
	for i, l := range n.links {
		ok, err := n.worth(i)
		if err != nil {
			return -1, err
		}
		if ok && n.rows[l.Build] < least {
			best, least = i, n.rows[l.Build]
		}
	}
	return best, nil
}

// worth says whether a link may be tried: its build side is filtered and small
// beside the probe side.
func (n *narrowing) worth(i int) (bool, error) {
	l := n.links[i]
	build, probe := n.sources[l.Build], n.sources[l.Probe]
	if n.tried[i] || build.constraint.IsAll() && build.narrowed.IsAll() || probe.rows < minProbeRows {
		return false, nil
	}
	if kind, ok := predicate.KindOf(l.BuildColumn.Type); !ok || kind == predicate.KindBool {
		return false, nil
	}
	reads, err := n.bound(l.Build)
	if err != nil || reads > maxBuildRows {
		return false, err
	}
	left, err := n.bound(l.Probe)
	return left >= minProbeRows && reads <= left/buildShare, err
}

// build reads the keys of a link and narrows all probes that ask for the same.
func (n *narrowing) build(link int) error {
	l := n.links[link]
	found, err := n.keys(n.sources[l.Build], l)
	if err != nil {
		return err
	}
	for i, other := range n.links {
		if n.tried[i] || other.Build != l.Build || other.BuildColumn.Index != l.BuildColumn.Index {
			continue
		}
		if i != link {
			ok, err := n.worth(i)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		n.tried[i] = true
		if err := n.apply(found, other); err != nil {
			return err
		}
	}
	return nil
}

// keySet is what is known of the keys of a build side.
type keySet struct {
	domain predicate.Domain
	// share estimates the part of the key's values that it holds; 1 if unknown.
	share float64
	count int // of keys; -1 for a range
}

// apply narrows the probe side of a link, if that leaves out enough.
func (n *narrowing) apply(found keySet, l tree.Link) error {
	s := n.sources[l.Probe]
	before, err := n.bound(l.Probe)
	if err != nil {
		return err
	}
	old, domain := s.narrowed, found.domain
	if l.Nulls {
		domain = domain.Union(predicate.OnlyNull(domain.Kind()))
	}
	s.narrowed = old.And(predicate.Where(map[string]predicate.Domain{l.ProbeColumn.Name: domain}))
	n.rows[l.Probe] = -1
	after, err := n.bound(l.Probe)
	if err != nil {
		return err
	}
	if after > before/2 && found.share > maxKeyShare {
		s.narrowed, n.rows[l.Probe] = old, before
		return nil
	}
	what := "a range"
	if found.count >= 0 {
		what = fmt.Sprintf("%d keys", found.count)
	}
	s.narrowedBy = append(s.narrowedBy, fmt.Sprintf("%s: %s of %s.%s", l.ProbeColumn.Name, what, n.sources[l.Build].name(), l.BuildColumn.Name))
	return nil
}

// keys reads the values of the build column.
func (n *narrowing) keys(s *source, l tree.Link) (keySet, error) {
	scan, err := s.snapshot.Scan(n.x.ctx, connector.ScanRequest{
		Table: s.name(), Columns: []string{l.BuildColumn.Name}, Constraint: s.effective(), Limit: -1,
	})
	if err != nil {
		return keySet{}, err
	}
	defer scan.Close()
	s.mu.Lock()
	s.mu.open = append(s.mu.open, scan)
	s.mu.Unlock()
	kind, _ := predicate.KindOf(l.BuildColumn.Type)
	c := collector{seen: map[predicate.Value]struct{}{}}
	for {
		batch, err := scan.Next(n.x.ctx)
		if errors.Is(err, io.EOF) {
			return c.result(kind, s.rows), nil
		}
		if err != nil {
			return keySet{}, err
		}
		c.add(batch.Column(0))
		batch.Release()
	}
}

// collector gathers distinct values while they are few, and always the least and
// the greatest.
type collector struct {
	seen        map[predicate.Value]struct{} // nil: too many
	null        bool                         // was met
	bytes       int
	rows        int64
	least, most predicate.Value
}

func (c *collector) add(column arrow.Array) {
	for i := range column.Len() {
		if column.IsNull(i) {
			c.null = true
			continue
		}
		v := predicate.At(column, i)
		c.rows++
		if c.seen != nil {
			if _, ok := c.seen[v]; ok {
				continue
			}
		}
		v = owned(v)
		if c.rows == 1 || v.Compare(c.least) < 0 {
			c.least = v
		}
		if c.rows == 1 || v.Compare(c.most) > 0 {
			c.most = v
		}
		if c.seen == nil {
			continue
		}
		c.seen[v] = struct{}{}
		if v.Kind() == predicate.KindBytes {
			c.bytes += len(v.AsBytes())
		}
		if len(c.seen) > maxKeys || c.bytes > maxKeyBytes {
			c.seen = nil
		}
	}
}

// owned copies a value whose text lies in a page.
func owned(v predicate.Value) predicate.Value {
	if v.Kind() == predicate.KindBytes {
		return predicate.Bytes(strings.Clone(v.AsBytes()))
	}
	return v
}

// result makes a domain of what was gathered; total is the rows of the table.
func (c *collector) result(kind predicate.Kind, total int64) keySet {
	if c.seen == nil {
		return keySet{share: 1, count: -1, domain: predicate.OfRanges(kind, c.null, predicate.Range{
			Low:  predicate.Bound{Value: c.least, Inclusive: true, Set: true},
			High: predicate.Bound{Value: c.most, Inclusive: true, Set: true},
		})}
	}
	values := make([]predicate.Value, 0, len(c.seen))
	for v := range c.seen {
		values = append(values, v)
	}
	found := keySet{domain: predicate.OfValues(kind, c.null, values...), share: 1, count: len(values)}
	// Only where hardly a value comes twice do the rows tell how many there are.
	if int64(len(values))*2 >= c.rows && total > 0 {
		found.share = float64(len(values)) / float64(total)
	}
	return found
}
