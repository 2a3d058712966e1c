package connector

import (
	"slices"
	"sync/atomic"

	"github.com/memconn/memconn/spill"
)

// MemoryInfo tells what memory and disk are used for.
type MemoryInfo struct {
	// Usage is the pool's account: budget, use by class and by table id.
	Usage spill.Usage
	// EngineBytes of the budget are set aside for the embedded engine.
	EngineBytes int64
	// Tables of the current version, by schema and name.
	Tables []TableMemory
	Disk   spill.DiskUsage
	// DiskErr says why Disk could not be taken; nil normally.
	DiskErr error
	// Snapshots and StagedWrites that are open.
	Snapshots    int64
	StagedWrites int
	// IngestedBytes of part files and records were committed by writes, JobBytes of part
	// files written by jobs, since the connector was opened.
	IngestedBytes, JobBytes int64
}

// WriteAmplification is how often jobs wrote what was ingested: 0 before anything was.
func (m MemoryInfo) WriteAmplification() float64 {
	if m.IngestedBytes == 0 {
		return 0
	}
	return float64(m.JobBytes) / float64(m.IngestedBytes)
}

// writtenBytes counts what went to disk, by whom.
type writtenBytes struct{ ingested, jobs atomic.Int64 }

// ingest counts a committed part, whose durable form is rows when it has no file.
func (w *writtenBytes) ingest(p *stagedPart) {
	w.ingested.Add(p.part.DiskBytes() + int64(len(p.rows)))
}

// TableMemory is one table's share.
type TableMemory struct {
	ID            uint64
	Name          TableName
	Rows          int64
	Parts         int
	CorruptParts  int   // could not be opened, or a reader met damage in them
	MemBytes      int64 // all of it in memory
	ResidentBytes int64 // in memory now
	DiskBytes     int64
	IndexBytes    int64
}

// Memory takes stock of memory and disk.
func (c *Connector) Memory() MemoryInfo {
	info := MemoryInfo{Usage: c.pool.Usage(), EngineBytes: c.options.EngineBytes}
	info.Snapshots = c.catalog.OpenSnapshots()
	info.StagedWrites = c.writes.count()
	info.IngestedBytes, info.JobBytes = c.written.ingested.Load(), c.written.jobs.Load()
	info.Disk, info.DiskErr = c.store.DiskUsage()
	s := c.Snapshot()
	defer s.Close()
	for _, schema := range s.Schemas() {
		for _, t := range s.Tables(schema) {
			info.Tables = append(info.Tables, TableMemory{
				ID: t.Definition().ID, Name: t.Name(), Rows: t.Rows(), Parts: len(t.state.Parts), CorruptParts: t.corruptParts(),
				MemBytes: t.MemBytes(), ResidentBytes: t.ResidentBytes(), DiskBytes: t.DiskBytes(), IndexBytes: t.IndexBytes(),
			})
		}
	}
	return info
}

func (r *writeRegistry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.open)
}

func sortJobs(infos []JobInfo) {
	slices.SortFunc(infos, func(a, b JobInfo) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		default:
			return 0
		}
	})
}

// nameOfTable says in words what a table is for errors about memory; "" for one that is
// not of the newest version.
func (c *Connector) nameOfTable(id uint64) string {
	if c.catalog == nil { // while the metadata is read
		return ""
	}
	t, ok := c.catalog.Current().TableByID(id)
	if !ok {
		return ""
	}
	if t.Def.CubeOf != 0 {
		return "cube " + nameOf(t.Def).String()
	}
	return "table " + nameOf(t.Def).String()
}
