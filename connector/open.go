package connector

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// Open opens a data directory, creating it when it is new, and brings back every
// acknowledged change. Only the footers of part files are read. A part that cannot be
// opened is quarantined: its table stays listed, reads of it fail with CORRUPT_DATA.
// Errors: INVALID_ARGUMENT for the options, CONFLICT when another process has the
// directory open, NOT_SUPPORTED when a newer program wrote it, CORRUPT_DATA when the
// metadata itself is damaged.
func Open(ctx context.Context, o Options) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &Connector{options: o, log: o.Log}
	if err := c.open(ctx); err != nil {
		return nil, wrap(err, "open data directory %q", o.DataDir)
	}
	return c, nil
}

// open brings everything up; on error everything is given back.
func (c *Connector) open(ctx context.Context) (err error) {
	o := c.options
	if c.pool, err = spill.NewPool(spill.PoolOptions{BudgetBytes: o.MemoryBudgetBytes}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.pool.Close())
		}
	}()
	c.pool.NameTables(c.nameOfTable)
	if o.EngineBytes > 0 {
		if c.engine, err = c.pool.Reserve(ctx, spill.Owner{Class: spill.ClassEngine}, o.EngineBytes); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				c.engine.Release()
			}
		}()
	}
	c.store, err = spill.OpenStore(ctx, o.DataDir, c.pool, spill.StoreOptions{
		FS: o.FS, Codec: o.Codec, Durability: o.Durability, Log: o.Log, MetaCacheBytes: metaCacheBytes(o.MemoryBudgetBytes),
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.store.Close())
		}
	}()
	c.env = table.Env{
		Store: c.store, Pool: c.pool, PageRows: o.PageRows, TargetBytes: o.PartTargetBytes,
		Workers: max(1, runtime.GOMAXPROCS(0)/o.Workers), Log: o.Log,
	}
	return c.recover(ctx)
}

// recovery brings the catalog back from the records.
type recovery struct {
	c       *Connector
	records records
	schemas []string
	parts   map[uint64][]*table.Part
	broken  map[uint64][]catalog.BrokenPart
}

// recover runs the steps of recovery in order. When one fails, the parts that were
// opened are given back.
func (c *Connector) recover(ctx context.Context) error {
	r := &recovery{c: c, parts: map[uint64][]*table.Part{}, broken: map[uint64][]catalog.BrokenPart{}}
	c.writes = newWriteRegistry(c)
	c.jobs = newJobRunner(c, c.options.Workers)
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"load the metadata records", r.loadRecords},
		{"open the parts", r.openParts},
		{"sweep files that no record names", r.sweep},
		{"publish the recovered version", r.publish},
		{"resume processing", r.resume},
	}
	for _, step := range steps {
		if err := step.run(ctx); err != nil {
			for _, parts := range r.parts {
				for _, p := range parts {
					p.Drop()
				}
			}
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// records are the decoded contents of the metadata store, but for the rows.
type records struct {
	counter counterRecord
	schemas []schemaRecord
	tables  []*table.Definition
	parts   map[uint64]map[uint64]partRecord // table id -> part id
	writes  map[string]writeRecord
}

// readRecords reads every record; used by recovery and by Inspect.
func readRecords(meta *spill.Meta) (records, error) {
	r := records{parts: map[uint64]map[uint64]partRecord{}, writes: map[string]writeRecord{}}
	r.counter.NextID = 1
	if value, ok, err := meta.Get([]byte(keyCounter)); err != nil {
		return r, err
	} else if ok {
		if err := decodeRecord([]byte(keyCounter), value, &r.counter); err != nil {
			return r, err
		}
	}
	for _, scan := range []struct {
		prefix string
		read   func(key, value []byte) error
	}{
		{prefixSchema, r.readSchema}, {prefixTable, r.readTable}, {prefixPart, r.readPart}, {prefixWrite, r.readWrite},
	} {
		if err := meta.Scan([]byte(scan.prefix), scan.read); err != nil {
			return r, fmt.Errorf("records %s*: %w", scan.prefix, err)
		}
	}
	return r, nil
}

func (r *records) readSchema(key, value []byte) error {
	var record schemaRecord
	if err := decodeRecord(key, value, &record); err != nil {
		return err
	}
	r.schemas = append(r.schemas, record)
	return nil
}

func (r *records) readTable(key, value []byte) error {
	var id uint64
	var record tableRecord
	if err := parseIDKey(prefixTable, key, &id); err != nil {
		return err
	}
	if err := decodeRecord(key, value, &record); err != nil {
		return err
	}
	def, err := tableFromRecord(id, key, record)
	if err != nil {
		return err
	}
	r.tables = append(r.tables, def)
	r.useID(id)
	return nil
}

func (r *records) readPart(key, value []byte) error {
	var tableID, partID uint64
	var record partRecord
	if err := parseIDKey(prefixPart, key, &tableID, &partID); err != nil {
		return err
	}
	if err := decodeRecord(key, value, &record); err != nil {
		return err
	}
	if r.parts[tableID] == nil {
		r.parts[tableID] = map[uint64]partRecord{}
	}
	r.parts[tableID][partID] = record
	r.useID(partID)
	return nil
}

func (r *records) readWrite(key, value []byte) error {
	var record writeRecord
	if err := decodeRecord(key, value, &record); err != nil {
		return err
	}
	r.writes[strings.TrimPrefix(string(key), prefixWrite)] = record
	return nil
}

// useID keeps ids from being given out twice, should the counter lag behind.
func (r *records) useID(id uint64) { r.counter.NextID = max(r.counter.NextID, id+1) }

func (r *recovery) loadRecords(context.Context) error {
	var err error
	if r.records, err = readRecords(r.c.store.Meta()); err != nil {
		return err
	}
	for id, record := range r.records.writes {
		r.c.writes.load(id, record)
	}
	seen := map[string]bool{}
	for _, s := range r.records.schemas {
		seen[catalog.Fold(s.Name)] = true
		r.schemas = append(r.schemas, s.Name)
	}
	add := func(name string) {
		if !seen[catalog.Fold(name)] {
			seen[catalog.Fold(name)] = true
			r.schemas = append(r.schemas, name)
		}
	}
	add(DefaultSchema)
	for _, def := range r.records.tables {
		// Its record goes and comes with the schema's, but a table must not be out of
		// reach should that ever be wrong.
		add(def.Schema)
	}
	return nil
}

// openParts opens the part files and rebuilds the memory parts.
func (r *recovery) openParts(ctx context.Context) error {
	type opened struct {
		def  *table.Definition
		id   uint64
		rec  partRecord
		part *table.Part
		err  error
	}
	var all []*opened
	for _, def := range r.records.tables {
		for id, rec := range r.records.parts[def.ID] {
			all = append(all, &opened{def: def, id: id, rec: rec})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for _, o := range all {
		group.Go(func() error {
			o.part, o.err = r.openPart(ctx, o.def, o.id, o.rec)
			if o.err != nil && fatal(o.err) {
				return o.err
			}
			return nil
		})
	}
	err := group.Wait()
	for _, o := range all {
		switch {
		case o.part != nil:
			r.parts[o.def.ID] = append(r.parts[o.def.ID], o.part)
		case o.err != nil && err == nil:
			r.quarantine(o.def, o.id, o.rec, o.err)
		}
	}
	return err
}

// fatal says of an error that it is not about the one part.
func fatal(err error) bool {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return true
	}
	return errors.Is(err, spill.ErrBudget) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (r *recovery) openPart(ctx context.Context, def *table.Definition, id uint64, rec partRecord) (*table.Part, error) {
	p, err := r.c.loadPart(ctx, def, id, rec)
	if err != nil {
		return nil, err
	}
	if rec.Seq[0] > rec.Seq[1] {
		p.Drop()
		return nil, fmt.Errorf("the catalog recorded commits %d to %d: %w", rec.Seq[0], rec.Seq[1], spill.ErrCorrupt)
	}
	if rec.Seq == [2]uint64{} {
		// A record from before commits were noted. No version is older than the first, and
		// the intervals of cubes begin behind 0.
		rec.Seq = [2]uint64{1, 1}
	}
	p.SetSequence(rec.Seq[0], rec.Seq[1])
	if p.Rows() != rec.Rows {
		rows := p.Rows()
		p.Drop()
		return nil, fmt.Errorf("the part holds %d rows, the catalog recorded %d: %w", rows, rec.Rows, spill.ErrCorrupt)
	}
	return p, nil
}

func (c *Connector) loadPart(ctx context.Context, def *table.Definition, id uint64, rec partRecord) (*table.Part, error) {
	if rec.Kind == partInFile {
		return table.Open(ctx, c.env, def, id)
	}
	stream, ok, err := c.store.Meta().Get(rowsKey(id))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("record %q is missing: %w", rowsKey(id), spill.ErrCorrupt)
	}
	return memoryPart(ctx, c.env, def, id, stream)
}

func (r *recovery) quarantine(def *table.Definition, id uint64, rec partRecord, err error) {
	b := catalog.BrokenPart{ID: id, Rows: rec.Rows, Err: err, Path: partPlace(r.c.store, id, rec)}
	var corrupt *spill.CorruptError
	if errors.As(err, &corrupt) && corrupt.Path != "" {
		b.Path = corrupt.Path
	}
	r.broken[def.ID] = append(r.broken[def.ID], b)
	r.c.log.Error("a part could not be opened and is quarantined", "table", nameOf(def).String(), "part", id, "rows", rec.Rows, "file", b.Path, "error", err)
}

// partPlace says where the rows of a part should be.
func partPlace(store *spill.Store, id uint64, rec partRecord) string {
	if rec.Kind == partInRows {
		return fmt.Sprintf("record %s in %s/meta", rowsKey(id), store.Dir())
	}
	return fmt.Sprintf("part file %d in %s/parts", id, store.Dir())
}

// strayParts lists the part files that no record names.
func strayParts(store *spill.Store, r records) ([]uint64, error) {
	named := map[uint64]bool{}
	for _, parts := range r.parts {
		for id, rec := range parts {
			if rec.Kind == partInFile {
				named[id] = true
			}
		}
	}
	ids, err := store.ListParts()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id uint64) bool { return named[id] }), nil
}

// sweep removes what writes and jobs left behind that never were committed. It keeps
// them when the metadata may have lost the records that named them.
func (r *recovery) sweep(context.Context) error {
	stray, err := strayParts(r.c.store, r.records)
	if err != nil {
		return err
	}
	for _, id := range stray {
		r.records.useID(id)
		if !r.c.store.Meta().KeepStrays() {
			if err := r.c.store.RemovePart(id); err != nil {
				return err
			}
			continue
		}
		path, err := r.c.store.SetAsidePart(id)
		if err != nil {
			return err
		}
		r.c.log.Warn("a part file without a record may hold rows that the metadata lost, so it is kept", "part", id, "file", path)
	}
	return nil
}

func (r *recovery) publish(context.Context) error {
	c := r.c
	c.ids = newIDSource(r.records.counter.NextID)
	version := r.records.counter.Version
	if version > 0 {
		version-- // so that the recovered version has the number of the last one
	}
	c.catalog = catalog.New(version)
	c.publisher = &publisher{catalog: c.catalog, store: c.store, ids: c.ids, sync: c.options.Durability == spill.DurabilityCommit}
	e := &catalog.Edit{AddSchemas: r.schemas, PutTables: r.records.tables, AddParts: r.parts, AddBroken: r.broken}
	if _, err := c.catalog.Publish(e, nil); err != nil {
		return err
	}
	r.parts = nil // the catalog owns them now
	return nil
}

func (r *recovery) resume(context.Context) error {
	r.c.jobs.start()
	r.c.writes.start()
	for _, t := range r.c.catalog.Current().AllTables() {
		r.c.jobs.notifyMerge(t.Def.ID)
		if t.Def.CubeOf != 0 || r.c.unfitParts(t.Def.ID) {
			r.c.jobs.notify(t.Def.ID)
		}
	}
	return nil
}
