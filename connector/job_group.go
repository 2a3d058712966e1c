package connector

import (
	"fmt"
	"slices"
	"sort"
	"strings"

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

// partitionOf names the values that all rows of the part have in the columns by which
// the table is partitioned. A part that is not proven to have one value in each is alone
// in its partition, and so it is never joined with another.
func partitionOf(p *table.Part, d *table.Definition) string {
	var name strings.Builder
	for _, id := range d.Properties.PartitionedBy {
		z, ok := p.Zone(id)
		switch {
		case !ok && slices.Contains(p.Columns(), id):
			return fmt.Sprintf("part %d", p.ID())
		case !ok || z.Values() == 0: // a column that the part lacks is NULL
			name.WriteString("NULL,")
		case z.Nulls == 0 && z.Bounded && z.MinExact && z.MaxExact && z.Min == z.Max:
			fmt.Fprintf(&name, "%q,", z.Min)
		default:
			return fmt.Sprintf("part %d", p.ID())
		}
	}
	return name.String()
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
