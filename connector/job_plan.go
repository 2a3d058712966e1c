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

// planJob chooses the parts that the next job of a table rewrites; nil when there is
// nothing to do. Large fresh parts are taken one at a time, small ones together, along
// with processed parts that are not much larger.
func planJob(t *catalog.TableState, targetBytes int64) (sources []*table.Part, kind string) {
	var fresh, processed []*table.Part
	for _, p := range t.Parts {
		switch {
		case p.Processed():
			if p.MemBytes() < targetBytes/2 {
				processed = append(processed, p)
			}
		case p.MemBytes() >= targetBytes/2:
			return []*table.Part{p}, jobProcess
		default:
			fresh = append(fresh, p)
		}
	}
	slices.SortStableFunc(processed, func(a, b *table.Part) int { return int(min(max(a.MemBytes()-b.MemBytes(), -1), 1)) })
	if len(fresh) > 0 {
		return planFresh(fresh, processed, targetBytes), jobProcess
	}
	return planMerge(processed, targetBytes), jobMerge
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
