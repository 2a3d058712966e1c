package connector

import (
	"slices"
	"time"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

const (
	// smallPartsDelay gathers small inserts before a job turns them into a part: a job
	// for each would cost more than the inserts.
	smallPartsDelay = 200 * time.Millisecond
	// maxSmallParts fresh parts are not left waiting for more.
	maxSmallParts = 256
	// maxJobSources bounds the parts that one job merges.
	maxJobSources = 4096
	// maxWideAttempts of a job take all parts that can be sorted at once; what fails more
	// often is tried with one large part at a time.
	maxWideAttempts = 3
	// mergeMinParts is how many small processed parts are worth a job of their own.
	mergeMinParts = 8
	// mergeGrowth times the rows gathered so far is the largest processed part that a
	// job takes in. So every row is rewritten a logarithmic number of times only, and
	// the sizes of the parts that stay grow geometrically.
	mergeGrowth = 2
)

// Kinds of jobs.
const (
	jobProcess = "process"
	jobMerge   = "merge"
)

// planning is what a plan depends on besides the table.
type planning struct {
	targetBytes int64
	// barriers are the commit numbers over which no parts are joined, ascending.
	barriers []uint64
	// sortable says how many of the first of some parts can be sorted at once.
	sortable func([]*table.Part) int
}

// planJob chooses the parts that the next job of a table rewrites; nil when there is
// nothing to do. They are all of one group. Groups with fresh parts come first.
func planJob(t *catalog.TableState, o planning) (sources []*table.Part, kind string) {
	for _, parts := range groupParts(t.Parts, t.Def, o.barriers) {
		s, k := planGroup(parts, o)
		if len(s) > 0 && (k == jobProcess || len(sources) == 0) {
			sources, kind = s, k
		}
		if kind == jobProcess {
			break
		}
	}
	return sources, kind
}

// planGroup is planJob for the parts of one group. When there are large fresh parts, as
// many fresh parts are taken together as can be sorted at once, so that the results do
// not overlap; small ones alone are taken together along with processed parts that are
// not much larger.
func planGroup(parts []*table.Part, o planning) (sources []*table.Part, kind string) {
	targetBytes := o.targetBytes
	var fresh, large, processed []*table.Part
	for _, p := range parts {
		switch {
		case !p.Processed():
			fresh = append(fresh, p)
			if p.MemBytes() >= targetBytes/2 {
				large = append(large, p)
			}
		case p.MemBytes() < targetBytes/2:
			processed = append(processed, p)
		}
	}
	slices.SortStableFunc(processed, func(a, b *table.Part) int { return int(min(max(a.MemBytes()-b.MemBytes(), -1), 1)) })
	switch {
	case len(large) > 0:
		return planLarge(fresh, large, o.sortable), jobProcess
	case len(fresh) > 0:
		return planFresh(fresh, processed, targetBytes), jobProcess
	}
	return planMerge(processed, targetBytes), jobMerge
}

// planLarge takes all fresh parts that can be sorted at once, and one large part when
// they would not include any.
func planLarge(fresh, large []*table.Part, sortable func([]*table.Part) int) []*table.Part {
	sources := fresh[:min(len(fresh), maxJobSources)]
	sources = sources[:sortable(sources)]
	if !slices.Contains(sources, large[0]) {
		return large[:1]
	}
	return sources
}

// planFresh takes small fresh parts up to the size of one part, and fills up with
// processed ones, smallest first.
func planFresh(fresh, processed []*table.Part, targetBytes int64) []*table.Part {
	var sources []*table.Part
	sum := int64(0)
	for _, p := range fresh {
		if len(sources) > 0 && (sum+p.MemBytes() > targetBytes || len(sources) >= maxJobSources) {
			return sources
		}
		sources = append(sources, p)
		sum += p.MemBytes()
	}
	for _, p := range processed {
		if p.MemBytes() > mergeGrowth*sum || sum+p.MemBytes() > targetBytes || len(sources) >= maxJobSources {
			break
		}
		sources = append(sources, p)
		sum += p.MemBytes()
	}
	return sources
}

// planMerge takes the smallest processed parts when there are many.
func planMerge(processed []*table.Part, targetBytes int64) []*table.Part {
	var sources []*table.Part
	sum := int64(0)
	for _, p := range processed {
		if p.MemBytes() > targetBytes/4 || sum+p.MemBytes() > targetBytes || len(sources) >= maxJobSources {
			break
		}
		sources = append(sources, p)
		sum += p.MemBytes()
	}
	if len(sources) < mergeMinParts {
		return nil
	}
	return sources
}

// planDelay is how long a table's fresh parts may wait.
func planDelay(t *catalog.TableState, o Options) time.Duration {
	count, bytes := 0, int64(0)
	for _, p := range t.Parts {
		if p.Processed() {
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
