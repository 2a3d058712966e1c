package connector

import (
	"cmp"
	"slices"
	"time"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

const (
	// smallPartsDelay gathers small inserts before a job turns them into a part: a job
	// for each would cost more than the inserts.
	smallPartsDelay = 200 * time.Millisecond
	// maxSmallParts fresh parts are not left waiting for more.
	maxSmallParts = 256
	// maxJobSources bounds the parts that one job merges, maxMergeTargets their bytes as a
	// multiple of a full part: sources and results are on disk together.
	maxJobSources   = 4096
	maxMergeTargets = 16
	// maxWideAttempts of a job take all parts that can be sorted at once; what fails more
	// often is tried with one large part at a time.
	maxWideAttempts = 3
	// mergeFanIn parts, or rows of parts that do not overlap, whose sizes differ by
	// mergeTier times at most are merged: every row is rewritten log(table / insert) to
	// the base mergeFanIn times, and mergeFanIn-1 of each tier may be left.
	mergeFanIn = 4
	mergeTier  = 4
	// mergeGrowth times the rows gathered so far is the largest processed part that a
	// job takes in along with fresh ones.
	mergeGrowth = 2
	// Parts below target/tinyShare are one tier, whatever their sizes.
	tinyShare = 1024
)

// Kinds of jobs.
const (
	jobProcess = "process"
	jobMerge   = "merge"
)

// candidate is a part as a plan sees it.
type candidate struct {
	part  *table.Part
	bytes int64
	// fresh parts are not processed, or not in the order that the table has now.
	fresh bool
	group mergeGroup
	// key is the range of the first sort column, when exactly known.
	key minmax.Zone
}

// planning is what a plan depends on besides the candidates.
type planning struct {
	kind        string // jobProcess or jobMerge
	targetBytes int64
	sorted      bool // the table has an order
	// sortable says how many of the first of some parts can be sorted at once, mergeable
	// how many sorted ones can be merged at once.
	sortable, mergeable func([]*table.Part) int
}

// jobPlan is what the next job of a table does: nothing without sources.
type jobPlan struct {
	sources []*table.Part
	// fewer: the job is of no use unless its results are fewer than its sources.
	fewer bool
}

// candidatesOf describes the parts of a table. barriers are the commit numbers over
// which no parts are joined, ascending.
func candidatesOf(t *catalog.TableState, barriers []uint64) []candidate {
	sortedBy := t.Def.Properties.SortedBy
	all := make([]candidate, len(t.Parts))
	for i, p := range t.Parts {
		c := candidate{part: p, bytes: p.MemBytes(), group: groupOf(p, t.Def, barriers)}
		c.fresh = unfit(t.Def, p)
		if len(sortedBy) > 0 {
			if z, ok := p.Zone(sortedBy[0].Column); ok && z.MinExact && z.MaxExact {
				c.key = z
			}
		}
		all[i] = c
	}
	return all
}

// planJob chooses the parts that the next job of a table and kind rewrites, all of one
// group. It reads nothing but its arguments.
func planJob(all []candidate, o planning) jobPlan {
	for _, group := range groupCandidates(all) {
		if p := o.planGroup(group); len(p.sources) > 0 {
			return p
		}
	}
	return jobPlan{}
}

// planGroup is planJob for the parts of one group. When there are large fresh parts, as
// many fresh parts are processed together as can be sorted at once, so that the results
// do not overlap; small ones alone are taken together along with processed parts that are
// not much larger. Small processed parts are merged, then parts that overlap.
func (o planning) planGroup(group []candidate) jobPlan {
	var fresh, large, done []candidate
	for _, c := range group {
		switch {
		case !c.fresh:
			done = append(done, c)
		case c.bytes >= o.targetBytes/2:
			large = append(large, c)
			fresh = append(fresh, c)
		default:
			fresh = append(fresh, c)
		}
	}
	small := slices.DeleteFunc(slices.Clone(done), func(c candidate) bool { return c.bytes >= o.targetBytes/2 })
	slices.SortStableFunc(small, bySize)
	switch {
	case o.kind == jobProcess && len(large) > 0:
		return jobPlan{sources: o.planLarge(fresh, large)}
	case o.kind == jobProcess && len(fresh) > 0:
		return jobPlan{sources: o.planFresh(fresh, small)}
	case o.kind == jobProcess:
		return jobPlan{}
	}
	if sources := o.planSmall(small); len(sources) > 0 {
		return jobPlan{sources: sources, fewer: true}
	}
	return jobPlan{sources: o.planOverlap(done)}
}

func bySize(a, b candidate) int { return cmp.Compare(a.bytes, b.bytes) }

func partsIn(cs []candidate) []*table.Part {
	parts := make([]*table.Part, len(cs))
	for i := range cs {
		parts[i] = cs[i].part
	}
	return parts
}

// planLarge takes all fresh parts that can be sorted at once, and one large part when
// they would not include any.
func (o planning) planLarge(fresh, large []candidate) []*table.Part {
	sources := partsIn(fresh[:min(len(fresh), maxJobSources)])
	sources = sources[:o.sortable(sources)]
	if !slices.Contains(sources, large[0].part) {
		return partsIn(large[:1])
	}
	return sources
}

// planFresh takes small fresh parts up to the size of one part, and fills up with
// processed ones, smallest first.
func (o planning) planFresh(fresh, small []candidate) []*table.Part {
	var sources []*table.Part
	sum := int64(0)
	fits := func(c candidate) bool { return sum+c.bytes <= o.targetBytes && len(sources) < maxJobSources }
	for _, c := range fresh {
		if len(sources) > 0 && !fits(c) {
			break
		}
		sources = append(sources, c.part)
		sum += c.bytes
	}
	if len(sources) == len(fresh) {
		for _, c := range small {
			if c.bytes > mergeGrowth*sum || !fits(c) {
				break
			}
			sources = append(sources, c.part)
			sum += c.bytes
		}
	}
	if o.sorted {
		return sources[:o.sortable(sources)]
	}
	return sources
}

// planSmall takes parts of one tier, the smallest that has enough of them; nil when there
// is none. small is in ascending order of sizes.
func (o planning) planSmall(small []candidate) []*table.Part {
	for lo := range small {
		limit := max(mergeTier*small[lo].bytes, o.targetBytes/tinyShare)
		hi, sum := lo, int64(0)
		for hi < len(small) && small[hi].bytes <= limit && sum+small[hi].bytes <= o.targetBytes && hi-lo < maxJobSources {
			sum += small[hi].bytes
			hi++
		}
		if hi-lo >= mergeFanIn {
			return o.mergeableOf(small[lo:hi])
		}
	}
	return nil
}

// mergeableOf gives the parts that can be merged at once; nil when it is not even two.
func (o planning) mergeableOf(cs []candidate) []*table.Part {
	sources := partsIn(cs)
	if o.sorted {
		sources = sources[:o.mergeable(sources)]
	}
	if len(sources) < 2 {
		return nil
	}
	return sources
}

// planDelay is how long a table's fresh parts may wait.
func planDelay(t *catalog.TableState, o Options) time.Duration {
	count, bytes := 0, int64(0)
	for _, p := range t.Parts {
		if !unfit(t.Def, p) {
			continue
		}
		if p.Durable() {
			return o.ProcessingDelay
		}
		count++
		bytes += p.MemBytes()
	}
	if count >= maxSmallParts || bytes >= o.SmallInsertBytes {
		return o.ProcessingDelay
	}
	return max(o.ProcessingDelay, smallPartsDelay)
}
