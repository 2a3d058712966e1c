package connector

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// Snapshot is one version of all tables, which stays readable until Close. It is
// safe for concurrent use. Scans begun on it may outlive it.
type Snapshot struct {
	c    *Connector
	held *catalog.Snapshot
	own  catalog.Snapshot // what held points to in snapshots that are taken for each statement
}

// Snapshot takes hold of the current version. It never waits. The caller closes it.
func (c *Connector) Snapshot() *Snapshot {
	s := &Snapshot{c: c}
	c.catalog.AcquireInto(&s.own)
	s.held = &s.own
	return s
}

// Close gives the version up. Closing again does nothing.
func (s *Snapshot) Close() { s.held.Close() }

// Clone gives another snapshot of the same version, with a Close of its own. A
// closed snapshot cannot be cloned.
func (s *Snapshot) Clone() (*Snapshot, error) {
	held, ok := s.held.Clone()
	if !ok {
		return nil, errSnapshotClosed()
	}
	return &Snapshot{c: s.c, held: held}, nil
}

func errSnapshotClosed() *Error {
	return Errorf(CodeInvalidArgument, "the snapshot is closed: take a new one")
}

// Version gives the number of the version. Numbers grow with every change, over
// restarts too.
func (s *Snapshot) Version() uint64 { return s.held.Version().Number }

// Schemas lists the schemas by name.
func (s *Snapshot) Schemas() []string { return s.held.Version().Schemas() }

// HasSchema says whether the schema exists, without regard to case.
func (s *Snapshot) HasSchema(name string) bool { return s.held.Version().HasSchema(name) }

// Tables lists the tables of a schema by name, without cubes; nil when there is none.
func (s *Snapshot) Tables(schema string) []*Table {
	if schema == "" {
		schema = DefaultSchema
	}
	var tables []*Table
	for _, t := range s.held.Version().Tables(schema) {
		if t.Def.CubeOf != 0 {
			continue
		}
		tables = append(tables, &Table{state: t})
	}
	return tables
}

// Table looks a table up by name, without regard to case. A miss is SCHEMA_NOT_FOUND
// or TABLE_NOT_FOUND.
func (s *Snapshot) Table(name TableName) (*Table, error) {
	t, err := findTable(s.held.Version(), name)
	if err != nil {
		return nil, err
	}
	return &Table{state: t}, nil
}

// Table is one table in one snapshot. It must not be used after the snapshot's Close.
type Table struct{ state *catalog.TableState }

// Definition gives the table's definition, shared and read-only.
func (t *Table) Definition() *table.Definition { return t.state.Def }

// Name gives schema and table as they were written at creation.
func (t *Table) Name() TableName { return nameOf(t.state.Def) }

// ArrowSchema gives all columns in order, with canonical types.
func (t *Table) ArrowSchema() *arrow.Schema { return t.state.Def.ArrowSchema() }

// Rows counts the table's rows.
func (t *Table) Rows() int64 { return t.state.Rows }

// MemBytes is what the table takes when all of it is in memory.
func (t *Table) MemBytes() int64 { return t.sum((*table.Part).MemBytes) }

// ResidentBytes is the part of MemBytes that is in memory now.
func (t *Table) ResidentBytes() int64 { return t.sum((*table.Part).ResidentBytes) }

// DiskBytes is the length of the table's part files.
func (t *Table) DiskBytes() int64 { return t.sum((*table.Part).DiskBytes) }

// IndexBytes is the size of the table's indexes, contained in MemBytes.
func (t *Table) IndexBytes() int64 { return t.sum((*table.Part).IndexBytes) }

func (t *Table) sum(of func(*table.Part) int64) int64 {
	var n int64
	for _, p := range t.state.Parts {
		n += of(p)
	}
	return n
}

// Processed says whether every part is sorted, indexed and spilled as the table's
// properties say.
func (t *Table) Processed() bool {
	for _, p := range t.state.Parts {
		if unfit(t.state.Def, p) {
			return false
		}
	}
	return true
}

// Err says why the table cannot be read: CORRUPT_DATA when one of its parts could
// not be opened, else nil.
func (t *Table) Err() error { return brokenTable(t.state) }

// brokenTable is the error of every read of a table with quarantined parts.
func brokenTable(t *catalog.TableState) error {
	if len(t.Broken) == 0 {
		return nil
	}
	b := t.Broken[0]
	return &Error{
		Code: CodeCorruptData,
		Message: Errorf(CodeCorruptData, "table %s cannot be read: part %d of %d rows (%s) could not be opened, %d such parts in all; "+
			"restore the file from a backup and restart, or TRUNCATE or DROP the table", nameOf(t.Def), b.ID, b.Rows, b.Path, len(t.Broken)).Message,
		Details: map[string]any{"table": nameOf(t.Def).String(), "part": b.ID, "file": b.Path},
		Err:     b.Err,
	}
}

// PartInfo describes one part of a table.
type PartInfo struct {
	ID     uint64 `json:"id"`
	Rows   int64  `json:"rows"`
	Groups int    `json:"groups"`
	// State is "fresh", "processed" or "corrupt": it could not be opened, or a reader met
	// damage in it.
	State string `json:"state"`
	// Reason says of a corrupt part what is wrong with it.
	Reason        string   `json:"reason,omitempty"`
	SortedBy      []string `json:"sortedBy"`
	MemBytes      int64    `json:"memBytes"`
	ResidentBytes int64    `json:"residentBytes"`
	DiskBytes     int64    `json:"diskBytes"`
	IndexBytes    int64    `json:"indexBytes"`
	// Location is "memory" (no file yet), "disk" (nothing but indexes in memory) or "both".
	Location string `json:"location"`
	// Min and Max hold the least and greatest value of each column for which they are
	// known, as text.
	Min map[string]string `json:"min"`
	Max map[string]string `json:"max"`
}

// Parts describes every part in ascending order of ids.
func (t *Table) Parts() []PartInfo {
	infos := make([]PartInfo, 0, len(t.state.Parts)+len(t.state.Broken))
	for _, p := range t.state.Parts {
		infos = append(infos, t.partInfo(p))
	}
	for _, b := range t.state.Broken {
		infos = append(infos, PartInfo{ID: b.ID, Rows: b.Rows, State: "corrupt", Reason: reasonOf(b.Err), Location: "disk", Min: map[string]string{}, Max: map[string]string{}})
	}
	return infos
}

// reasonOf is the text of an error, which may be nil.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// corruptParts counts the parts that could not be opened or in which a reader met damage.
func (t *Table) corruptParts() int {
	n := len(t.state.Broken)
	for _, p := range t.state.Parts {
		if p.Damage() != nil {
			n++
		}
	}
	return n
}

func (t *Table) partInfo(p *table.Part) PartInfo {
	def := t.state.Def
	info := PartInfo{
		ID: p.ID(), Rows: p.Rows(), Groups: p.Groups(), State: "fresh", Location: "both",
		MemBytes: p.MemBytes(), ResidentBytes: p.ResidentBytes(), DiskBytes: p.DiskBytes(), IndexBytes: p.IndexBytes(),
		Min: map[string]string{}, Max: map[string]string{},
	}
	if p.Processed() {
		info.State = "processed"
	}
	if err := p.Damage(); err != nil {
		info.State, info.Reason = "corrupt", err.Error()
	}
	switch {
	case info.DiskBytes == 0:
		info.Location = "memory"
	case info.ResidentBytes <= info.IndexBytes:
		info.Location = "disk"
	}
	for _, k := range p.SortedBy() {
		if c, ok := def.ColumnByID(k.Column); ok {
			info.SortedBy = append(info.SortedBy, SortSpec{Column: c.Name, Desc: k.Desc, NullsFirst: k.NullsFirst}.String())
		}
	}
	for _, c := range def.Columns {
		z, ok := p.Zone(c.ID)
		if !ok || !z.Bounded {
			continue
		}
		info.Min[c.Name] = predicate.Format(c.Type, z.Min)
		info.Max[c.Name] = predicate.Format(c.Type, z.Max)
	}
	return info
}
