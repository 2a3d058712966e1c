package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// inspectBudgetBytes is the memory of an inspection: parts are looked at one by one.
const inspectBudgetBytes = 1 << 30

// InspectOptions say what to look at.
type InspectOptions struct {
	DataDir string
	FS      vfs.FS // nil is the operating system's
	// Verify reads every byte: all checksums, all offsets, all row counts.
	Verify bool
}

// InspectReport describes a data directory that no process has open.
type InspectReport struct {
	DataDir  string          `json:"dataDir"`
	Version  uint64          `json:"version"` // number of the last published version
	NextID   uint64          `json:"nextId"`
	Schemas  []string        `json:"schemas"`
	Tables   []InspectTable  `json:"tables"`
	Writes   int             `json:"writes"` // remembered commits
	Stray    []uint64        `json:"stray"`  // part files that no record names; the next start removes them if the directory is sound
	Disk     spill.DiskUsage `json:"disk"`
	Verified bool            `json:"verified"`
	// Unfinished counts changes that are not in the metadata log but beside it, and that
	// the next start completes: a crash cut them off, or the end of the log was damaged.
	Unfinished int `json:"unfinished,omitempty"`
	// Problems name everything that is wrong; empty means that the directory is sound.
	Problems []InspectProblem `json:"problems"`
}

// InspectTable describes one table.
type InspectTable struct {
	ID    uint64        `json:"id"`
	Name  TableName     `json:"name"`
	Cube  bool          `json:"cube,omitempty"` // a cube, whose rows are its cells
	Rows  int64         `json:"rows"`
	Parts []InspectPart `json:"parts"`
	// Definition is the table's definition as it is stored.
	Definition *table.Definition `json:"-"`
}

// InspectPart describes one part.
type InspectPart struct {
	ID        uint64 `json:"id"`
	Kind      string `json:"kind"` // file or rows
	Rows      int64  `json:"rows"`
	Groups    int    `json:"groups"`
	Bytes     int64  `json:"bytes"` // on disk
	Processed bool   `json:"processed"`
	Indexes   int64  `json:"indexBytes"`
	Err       string `json:"error,omitempty"`
}

// InspectProblem names one thing that is wrong.
type InspectProblem struct {
	Table string `json:"table,omitempty"`
	Part  uint64 `json:"part,omitempty"`
	File  string `json:"file,omitempty"`
	What  string `json:"what"`
}

// Inspect reads a data directory without changing it. The error says that it could
// not be looked at at all; what is wrong inside is in the report's Problems.
func Inspect(ctx context.Context, o InspectOptions) (report *InspectReport, err error) {
	if o.DataDir == "" {
		o.DataDir = DefaultDataDir
	}
	pool, err := spill.NewPool(spill.PoolOptions{BudgetBytes: inspectBudgetBytes})
	if err != nil {
		return nil, wrap(err, "inspect %q", o.DataDir)
	}
	defer func() { err = asError(errors.Join(err, pool.Close())) }()
	store, err := spill.OpenStoreReadOnly(ctx, o.DataDir, pool, spill.StoreOptions{FS: o.FS, MetaCacheBytes: maxMetaCacheBytes})
	if err != nil {
		return nil, wrap(err, "inspect %q", o.DataDir)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	i := &inspection{
		store: store, env: table.Env{Store: store, Pool: pool, PageRows: DefaultPageRows, Workers: 1}, verify: o.Verify,
		report: &InspectReport{DataDir: o.DataDir, Verified: o.Verify},
	}
	if err := i.run(ctx); err != nil {
		return nil, wrap(err, "inspect %q", o.DataDir)
	}
	return i.report, nil
}

type inspection struct {
	store  *spill.Store
	env    table.Env
	verify bool
	report *InspectReport
}

func (i *inspection) run(ctx context.Context) error {
	unfinished, finding := i.store.Meta().Sound()
	i.report.Unfinished = unfinished
	if finding != nil {
		i.report.Problems = append(i.report.Problems, InspectProblem{File: i.store.Dir() + "/meta", What: finding.Error()})
	}
	r, err := readRecords(i.store.Meta())
	if err != nil {
		if CodeOf(err) != CodeCorruptData {
			return err
		}
		// Without its records the rest of the directory has no meaning.
		i.report.Problems = append(i.report.Problems, InspectProblem{File: i.store.Dir() + "/meta", What: err.Error()})
		return nil
	}
	i.report.Version, i.report.NextID, i.report.Writes = r.counter.Version, r.counter.NextID, len(r.writes)
	for _, s := range r.schemas {
		i.report.Schemas = append(i.report.Schemas, s.Name)
	}
	if !slices.Contains(i.report.Schemas, DefaultSchema) {
		i.report.Schemas = append(i.report.Schemas, DefaultSchema)
	}
	slices.Sort(i.report.Schemas)
	if err := i.tables(ctx, r); err != nil {
		return err
	}
	if i.report.Stray, err = strayParts(i.store, r); err != nil {
		return err
	}
	i.report.Disk, err = i.store.DiskUsage()
	return err
}

func (i *inspection) tables(ctx context.Context, r records) error {
	known := map[uint64]bool{}
	for _, def := range r.tables {
		known[def.ID] = true
		t := InspectTable{ID: def.ID, Name: nameOf(def), Cube: def.Cube != nil, Definition: def}
		if !slices.ContainsFunc(i.report.Schemas, func(s string) bool { return s == def.Schema }) {
			i.problem(def, 0, fmt.Sprintf("the table's schema %s has no record", def.Schema))
		}
		ids := make([]uint64, 0, len(r.parts[def.ID]))
		for id := range r.parts[def.ID] {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			p, err := i.part(ctx, def, id, r.parts[def.ID][id])
			if err != nil {
				return err
			}
			t.Rows += p.Rows
			t.Parts = append(t.Parts, p)
		}
		i.report.Tables = append(i.report.Tables, t)
	}
	for id, parts := range r.parts {
		if !known[id] {
			i.report.Problems = append(i.report.Problems, InspectProblem{What: fmt.Sprintf("%d parts are recorded for table id %d, which has no record", len(parts), id)})
		}
	}
	slices.SortFunc(i.report.Tables, func(a, b InspectTable) int {
		return slices.Compare([]string{a.Name.Schema, a.Name.Table}, []string{b.Name.Schema, b.Name.Table})
	})
	return nil
}

func (i *inspection) problem(def *table.Definition, part uint64, what string) {
	i.report.Problems = append(i.report.Problems, InspectProblem{Table: nameOf(def).String(), Part: part, What: what})
}

// part looks at one part; the error is only about the looking itself.
func (i *inspection) part(ctx context.Context, def *table.Definition, id uint64, rec partRecord) (InspectPart, error) {
	info := InspectPart{ID: id, Kind: rec.Kind, Rows: rec.Rows, Processed: rec.Processed}
	look := i.filePart
	if rec.Kind == partInRows {
		look = i.rowsPart
	}
	if err := look(ctx, def, &info); err != nil {
		if fatal(err) {
			return info, err
		}
		info.Err = err.Error()
		p := InspectProblem{Table: nameOf(def).String(), Part: id, File: partPlace(i.store, id, rec), What: info.Err}
		i.report.Problems = append(i.report.Problems, p)
	}
	return info, nil
}

func (i *inspection) filePart(ctx context.Context, def *table.Definition, info *InspectPart) error {
	p, err := table.Open(ctx, i.env, def, info.ID)
	if err != nil {
		return err
	}
	defer p.Drop()
	info.Groups, info.Bytes, info.Indexes = p.Groups(), p.DiskBytes(), p.IndexBytes()
	if err := info.check(p); err != nil || !i.verify {
		return err
	}
	f, err := i.store.OpenPart(ctx, info.ID)
	if err != nil {
		return err
	}
	defer f.Release()
	return f.Verify(ctx)
}

func (i *inspection) rowsPart(ctx context.Context, def *table.Definition, info *InspectPart) error {
	stream, ok, err := i.store.Meta().Get(rowsKey(info.ID))
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("record %q is missing: %w", rowsKey(info.ID), spill.ErrCorrupt)
	}
	info.Bytes = int64(len(stream))
	p, err := memoryPart(ctx, i.env, def, info.ID, stream)
	if err != nil {
		return err
	}
	defer p.Drop()
	info.Groups = p.Groups()
	return info.check(p)
}

// check compares a part with its record.
func (info *InspectPart) check(p *table.Part) error {
	if p.Rows() != info.Rows {
		return fmt.Errorf("the part holds %d rows, its record says %d", p.Rows(), info.Rows)
	}
	if p.Processed() != info.Processed {
		return fmt.Errorf("the part says processed=%t, its record %t", p.Processed(), info.Processed)
	}
	return nil
}
