package connector

import (
	"fmt"
	"sort"

	"github.com/memconn/memconn/table"
)

// mergeGroup names the parts of a table that may be joined with each other.
type mergeGroup struct {
	// Barriers below the first and the last commit of the part's rows: equal numbers mean
	// that no barrier lies between two parts. A part that straddles a barrier (it is older
	// than the barrier) is joined only with others that straddle it.
	below, within int
	partition     string
}

// groupOf gives the group of a part. barriers are ascending.
func groupOf(p *table.Part, d *table.Definition, barriers []uint64) mergeGroup {
	lo, hi := p.Sequence()
	return mergeGroup{below: countBelow(barriers, lo), within: countBelow(barriers, hi), partition: partitionOf(p, d)}
}

func countBelow(barriers []uint64, n uint64) int {
	return sort.Search(len(barriers), func(i int) bool { return barriers[i] >= n })
}

// partitionOf names the partition that the rows of the part belong to. A part that does not know is alone in its
// partition, and so it is never joined with another.
func partitionOf(p *table.Part, d *table.Definition) string {
	if len(d.Properties.PartitionedBy) == 0 {
		return ""
	}
	if name := p.Partition(); name != "" {
		return name
	}
	return fmt.Sprintf("part %d", p.ID())
}

// joinable says whether all parts are of one group.
func joinable(parts []*table.Part, d *table.Definition, barriers []uint64) bool {
	for _, p := range parts[1:] {
		if groupOf(p, d, barriers) != groupOf(parts[0], d, barriers) {
			return false
		}
	}
	return true
}

// groupCandidates divides candidates into groups, in the order of each group's first.
func groupCandidates(all []candidate) [][]candidate {
	at := map[mergeGroup]int{}
	var groups [][]candidate
	for _, c := range all {
		i, ok := at[c.group]
		if !ok {
			i = len(groups)
			at[c.group] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}
