package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
)

// Builder turns record batches into one fresh part. Every full page group is
// compressed and written to the staged file at once, by up to Env.Workers
// goroutines, and can be evicted from then on: a load may be larger than the
// memory budget. A Builder is used by one goroutine at a time and must end with
// Finish or Abort.
type Builder struct {
	def   *Definition
	env   Env
	a     *assembly
	stage *stage
	types []arrow.DataType // storage types

	writes   *errgroup.Group
	writeCtx context.Context
	cancel   context.CancelFunc

	order  []SortKey // set by FinishSorted
	last   bool      // no batch comes after the one that is being appended: its end need not be staged
	rows   int64
	groups int
	err    error // first failure; later calls repeat it
	done   bool
}

// NewBuilder starts a part with number id, which must be unused in the store.
func NewBuilder(env Env, d *Definition, id uint64) (*Builder, error) {
	b, err := newBuilder(env, d, id, true)
	if err != nil {
		return nil, fmt.Errorf("build part %d of table %s: %w", id, d.Name, err)
	}
	return b, nil
}

func newBuilder(env Env, d *Definition, id uint64, durable bool) (*Builder, error) {
	ctx, cancel := context.WithCancel(context.Background())
	a, err := newAssembly(ctx, env, d, id, durable)
	if err != nil {
		cancel()
		return nil, err
	}
	b := &Builder{def: d, env: env, a: a, cancel: cancel}
	for i := range a.part.cols {
		b.types = append(b.types, a.part.cols[i].storage)
	}
	b.stage = newStage(env.Pool, d.ID, b.types)
	b.writes, b.writeCtx = newWorkGroup(ctx, env.workers())
	return b, nil
}

// Rows is the number of rows appended so far.
func (b *Builder) Rows() int64 { return b.rows }

// Bytes is the size of the appended rows as pages in memory.
func (b *Builder) Bytes() int64 {
	if b.done {
		return 0
	}
	return b.a.bytes() + b.stage.bytes()
}

// Append copies the rows of a batch, which has exactly the definition's columns
// in order, in their canonical types (an extension column may come as its
// storage). The batch is only borrowed. After an error the builder can only be
// aborted.
func (b *Builder) Append(ctx context.Context, batch arrow.RecordBatch) error {
	if b.done {
		return errFinished
	}
	if b.err != nil {
		return b.err
	}
	arrs, err := b.columns(batch)
	if err != nil {
		return err
	}
	if err := b.append(ctx, arrs, int(batch.NumRows())); err != nil {
		b.err = fmt.Errorf("append to part %d of table %s: %w", b.a.part.id, b.def.Name, err)
		return b.err
	}
	return nil
}

// columns checks the batch against the definition and unwraps extensions.
func (b *Builder) columns(batch arrow.RecordBatch) ([]arrow.Array, error) {
	if int(batch.NumCols()) != len(b.def.Columns) {
		return nil, fmt.Errorf("batch has %d columns, table %s has %d: %w", batch.NumCols(), b.def.Name, len(b.def.Columns), ErrSchemaMismatch)
	}
	arrs := make([]arrow.Array, batch.NumCols())
	for i := range arrs {
		arrs[i] = storageArray(batch.Column(i))
		if !arrow.TypeEqual(arrs[i].DataType(), b.types[i]) {
			return nil, fmt.Errorf("column %q of table %s is %s, the batch has %s: %w",
				b.def.Columns[i].Name, b.def.Name, b.def.Columns[i].Type, batch.Column(i).DataType(), ErrSchemaMismatch)
		}
	}
	return arrs, nil
}

func (b *Builder) append(ctx context.Context, arrs []arrow.Array, rows int) error {
	for lo := 0; lo < rows; {
		if err := b.writeCtx.Err(); err != nil {
			return b.failure(err)
		}
		n := min(rows-lo, b.env.PageRows-b.stage.rows)
		// With nothing staged, a page group that is full or the last one comes straight from the batch.
		if n == b.env.PageRows || b.last && b.stage.rows == 0 && n == rows-lo {
			chunks := make([]chunk, len(arrs))
			for i := range arrs {
				chunks[i] = chunk{arr: arrs[i], lo: lo, hi: lo + n}
			}
			if err := b.flush(ctx, chunks); err != nil {
				return err
			}
		} else {
			if err := b.stage.add(ctx, arrs, lo, lo+n); err != nil {
				return err
			}
			if b.stage.rows == b.env.PageRows {
				if err := b.flushStage(ctx); err != nil {
					return err
				}
			}
		}
		lo += n
		b.rows += int64(n)
	}
	return nil
}

func (b *Builder) flushStage(ctx context.Context) error {
	if err := b.flush(ctx, b.stage.chunks()); err != nil {
		return err
	}
	b.stage.reset()
	return nil
}

// flush makes one page group of the chunks and hands its pages to the writers.
func (b *Builder) flush(ctx context.Context, chunks []chunk) error {
	g := b.groups
	b.groups++
	for i, c := range chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := buildPage(ctx, b.env.Pool, b.a.part.owner(), b.types[i], []chunk{c})
		if err != nil {
			return b.failure(fmt.Errorf("column %q: %w", b.def.Columns[i].Name, err))
		}
		put := func() error {
			if err := b.a.put(b.writeCtx, i, g, page); err != nil {
				return fmt.Errorf("column %q page group %d: %w", b.def.Columns[i].Name, g, err)
			}
			return nil
		}
		if b.a.writer != nil {
			b.writes.Go(put)
		} else if err := put(); err != nil { // nothing to compress or write: less than a goroutine costs
			return err
		}
	}
	return nil
}

// failure waits for the writers and prefers their error, which is the cause of
// whatever followed.
func (b *Builder) failure(err error) error {
	if cause := b.writes.Wait(); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// Finish writes the last page group and the footer and returns the fresh part,
// durable as the store's durability says. The caller owns the part. On error
// everything is gone as after Abort. A builder without rows gives a part without
// rows.
func (b *Builder) Finish(ctx context.Context) (*Part, error) {
	if b.done {
		return nil, errFinished
	}
	if b.err == nil && b.stage.rows > 0 {
		b.err = b.flushStage(ctx)
	}
	if err := b.writes.Wait(); err != nil && b.err == nil {
		b.err = err
	}
	if b.err == nil {
		b.err = ctx.Err()
	}
	if b.err != nil {
		return nil, errors.Join(fmt.Errorf("finish part %d of table %s: %w", b.a.part.id, b.def.Name, b.err), b.Abort())
	}
	b.close()
	p, err := b.a.finish(ctx, b.rows, b.order != nil, b.order)
	if err != nil {
		return nil, fmt.Errorf("finish part %d of table %s: %w", b.a.part.id, b.def.Name, err)
	}
	return p, nil
}

// Abort stops the writers and removes everything the builder made. It does
// nothing after Finish or another Abort.
func (b *Builder) Abort() error {
	if b.done {
		return nil
	}
	b.cancel()
	_ = b.writes.Wait() // the cause was reported, or the caller gave up
	b.close()
	return b.a.abort()
}

func (b *Builder) close() {
	b.done = true
	b.stage.release()
	b.cancel()
}

// NewMemoryPart makes a fresh part that has no file: its pages stay in memory
// until the part is dropped. The batches are as for Builder.Append, borrowed and
// copied. The durable form of such rows is the caller's business.
func NewMemoryPart(ctx context.Context, env Env, d *Definition, id uint64, batches []arrow.RecordBatch) (*Part, error) {
	b, err := newBuilder(env, d, id, false)
	if err != nil {
		return nil, fmt.Errorf("memory part %d of table %s: %w", id, d.Name, err)
	}
	for i, batch := range batches {
		b.last = i == len(batches)-1
		if err := b.Append(ctx, batch); err != nil {
			return nil, errors.Join(err, b.Abort())
		}
	}
	return b.Finish(ctx)
}
