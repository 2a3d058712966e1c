package table

// ScanStats says what a scan or an aggregate did.
type ScanStats struct {
	// Parts given, and parts of which at least one page group was read.
	PartsTotal, PartsRead int64
	// Page groups of all parts given, and those whose pages were read to evaluate
	// filters, to return rows or to aggregate.
	GroupsTotal, GroupsRead int64
	// RowsRead counts rows that were evaluated or returned, not those that an
	// index ruled out or counted.
	RowsTotal, RowsRead int64
	// BytesLoaded counts stored bytes read from disk for pages that were not resident.
	BytesLoaded int64
	// Indexes names what saved work, sorted: "bloom", "metadata", "partition",
	// "sparse", "zonemap". Shared: read only.
	Indexes []string
}

// indexUse is a set of index kinds that saved work.
type indexUse uint8

const (
	useBloom indexUse = 1 << iota
	useMetadata
	usePartition
	useSparse
	useZoneMap
	useAll = 1<<iota - 1
)

// indexNames holds the names of every set, so that reporting allocates nothing.
var indexNames = func() (names [useAll + 1][]string) {
	for set := range names {
		for i, name := range []string{"bloom", "metadata", "partition", "sparse", "zonemap"} {
			if set>>i&1 == 1 {
				names[set] = append(names[set], name)
			}
		}
	}
	return names
}()

func (u indexUse) names() []string { return indexNames[u] }
