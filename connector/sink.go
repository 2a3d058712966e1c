package connector

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// PageSink takes one task's rows of a write. Its methods may be called from any
// goroutine, one after the other. It ends with Finish or Abort.
type PageSink struct {
	w    *Write
	task string

	mu struct {
		sync.Mutex
		done    bool
		failed  error // an error after which only Abort is possible
		coercer *coercer
		rows    int64
		bytes   int64
		lanes   lanes
		parts   []*stagedPart
	}
}

// smallRows holds the first rows of a lane as an Arrow IPC stream: their durable
// form, should the sink stay small. The memory is counted.
type smallRows struct {
	buffer bytes.Buffer
	writer *ipc.Writer
	held   *spill.Reservation
	// only is the one batch that came, held so that its rows need not be read back from the stream; nil when there were
	// more, or when it holds on to more memory than small rows may take.
	only      arrow.RecordBatch
	onlyBytes int64
}

// Append takes a batch, which is only borrowed. Columns are matched by name without
// regard to case; lossless casts are made; a missing column becomes its default or
// NULL. SCHEMA_MISMATCH (column, types, row) and NOT_NULL_VIOLATION leave the sink as
// it was before the call; after MEMORY_LIMIT_EXCEEDED, DISK_FULL and the like only
// Abort is possible.
func (s *PageSink) Append(ctx context.Context, b arrow.RecordBatch) error {
	leave, err := s.w.enter()
	if err != nil {
		return err
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return asError(err)
	}
	if s.mu.coercer == nil || !s.mu.coercer.from.Equal(b.Schema()) {
		k, err := newCoercer(s.w.def, b.Schema())
		if err != nil {
			return err
		}
		s.mu.coercer = k
	}
	batch, err := s.mu.coercer.apply(b, s.mu.rows)
	if err != nil {
		return err
	}
	defer batch.Release()
	if batch.NumRows() == 0 {
		return nil
	}
	if err := s.takeLocked(ctx, batch); err != nil {
		s.mu.failed = wrap(err, "append to table %s", nameOf(s.w.def))
		return s.mu.failed
	}
	s.mu.rows += batch.NumRows()
	s.mu.bytes += batchBytes(batch)
	return nil
}

func (s *PageSink) usableLocked() error {
	switch {
	case s.mu.done:
		return Errorf(CodeInvalidArgument, "the sink of task %q is finished or aborted", s.task)
	case s.mu.failed != nil:
		return s.mu.failed
	default:
		return nil
	}
}

// takeLocked stages one coerced batch, each partition's rows apart.
func (s *PageSink) takeLocked(ctx context.Context, batch arrow.RecordBatch) error {
	isSmall := s.mu.bytes+batchBytes(batch) <= s.w.c.options.SmallInsertBytes
	if isSmall {
		s.w.c.relieve(ctx, s.w.def.ID)
	}
	return s.mu.lanes.each(s.w.def, batch, func(l *lane, rows arrow.RecordBatch) error {
		if !l.large {
			if isSmall {
				return l.small.add(ctx, s.w, rows)
			}
			l.large = true
			if err := s.spillSmallLocked(ctx, l); err != nil {
				return err
			}
		}
		return s.buildLocked(ctx, l, rows)
	})
}

// add appends a batch to the stream.
func (r *smallRows) add(ctx context.Context, w *Write, batch arrow.RecordBatch) error {
	if r.writer == nil {
		held, err := w.c.pool.Reserve(ctx, spill.Owner{Class: spill.ClassStaging, Table: w.def.ID}, batchBytes(batch))
		if err != nil {
			return err
		}
		r.held = held
		r.writer = ipc.NewWriter(&r.buffer, ipc.WithSchema(batch.Schema()))
		if n := table.HeldBytes(batch); n <= w.c.options.SmallInsertBytes {
			batch.Retain()
			r.only, r.onlyBytes = batch, n
		}
	} else {
		r.forgetOnly()
	}
	if err := r.writer.Write(batch); err != nil {
		return err
	}
	return r.held.Resize(ctx, int64(r.buffer.Cap())+r.onlyBytes)
}

func (r *smallRows) forgetOnly() {
	if r.only != nil {
		r.only.Release()
	}
	r.only, r.onlyBytes = nil, 0
}

// finish ends the stream and gives its bytes, which the reservation counts; both nil
// when there were no rows.
func (r *smallRows) finish() ([]byte, *spill.Reservation, error) {
	if r.writer == nil {
		return nil, nil, nil
	}
	if err := r.writer.Close(); err != nil {
		return nil, nil, err
	}
	stream, held := r.buffer.Bytes(), r.held
	r.forgetOnly()
	*r = smallRows{}
	return stream, held, nil
}

func (r *smallRows) discard() {
	r.forgetOnly()
	if r.held != nil {
		r.held.Release()
	}
	*r = smallRows{}
}

// spillSmallLocked moves a lane's small rows into a part file, because more came.
func (s *PageSink) spillSmallLocked(ctx context.Context, l *lane) error {
	stream, held, err := l.small.finish()
	if err != nil || stream == nil {
		return err
	}
	defer held.Release()
	batches, err := decodeRows(stream)
	if err != nil {
		return err
	}
	defer releaseAll(batches)
	for _, b := range batches {
		if err := s.buildLocked(ctx, l, b); err != nil {
			return err
		}
	}
	return nil
}

// buildLocked appends to the current part and ends it when it is full.
func (s *PageSink) buildLocked(ctx context.Context, l *lane, batch arrow.RecordBatch) error {
	c := s.w.c
	// A batch larger than a part is cut, or parts could grow without bound.
	rows := max(1, batch.NumRows()*c.options.PartTargetBytes/max(1, batchBytes(batch)))
	for lo := int64(0); lo < batch.NumRows(); lo += rows {
		if l.builder == nil {
			b, err := table.NewBuilder(c.env, s.w.def, c.ids.take())
			if err != nil {
				return err
			}
			l.builder = b
		}
		slice := batch.NewSlice(lo, min(lo+rows, batch.NumRows()))
		err := l.builder.Append(ctx, slice)
		slice.Release()
		if err != nil {
			return err
		}
		if l.builder.Bytes() >= c.options.PartTargetBytes {
			if err := s.endPartLocked(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *PageSink) endPartLocked(ctx context.Context, l *lane) error {
	b := l.builder
	l.builder = nil
	p, err := b.Finish(ctx)
	if err != nil {
		return err
	}
	s.mu.parts = append(s.mu.parts, &stagedPart{part: p})
	return nil
}

// endLanesLocked makes parts of what every lane still holds.
func (s *PageSink) endLanesLocked(ctx context.Context) error {
	for _, l := range s.mu.lanes.order {
		end := s.endSmallLocked
		if l.builder != nil {
			end = s.endPartLocked
		}
		if err := end(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// endSmallLocked makes a memory part of a lane's small rows.
func (s *PageSink) endSmallLocked(ctx context.Context, l *lane) error {
	only := l.small.only
	if only != nil {
		only.Retain()
		defer only.Release()
	}
	stream, held, err := l.small.finish()
	if err != nil || stream == nil {
		return err
	}
	var p *table.Part
	if id := s.w.c.ids.take(); only != nil {
		p, err = table.NewMemoryPart(ctx, s.w.c.env, s.w.def, id, []arrow.RecordBatch{only})
	} else {
		p, err = memoryPart(ctx, s.w.c.env, s.w.def, id, stream)
	}
	if err == nil {
		err = held.Resize(ctx, int64(cap(stream))) // the batch is given back
	}
	if err != nil {
		if p != nil {
			p.Obsolete()
			p.Drop()
		}
		held.Release()
		return err
	}
	s.mu.parts = append(s.mu.parts, &stagedPart{part: p, rows: stream, held: held})
	return nil
}

// Finish ends the sink and gives the fragment to list in Commit. The staged rows stay
// with the write. After an error everything the sink staged is gone.
func (s *PageSink) Finish(ctx context.Context) (Fragment, error) {
	leave, err := s.w.enter()
	if err != nil {
		return Fragment{}, err
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return Fragment{}, err
	}
	err = s.endLanesLocked(ctx)
	f := Fragment{WriteID: s.w.id, Task: s.task, Rows: s.mu.rows, Bytes: s.mu.bytes}
	for _, p := range s.mu.parts {
		f.Parts = append(f.Parts, p.part.ID())
	}
	if err == nil {
		err = s.w.keepStaged(s, f, s.mu.parts)
	}
	s.mu.done = true
	if err != nil {
		err = errors.Join(err, s.discardLocked())
		return Fragment{}, wrap(err, "finish the rows of task %q for table %s", s.task, nameOf(s.w.def))
	}
	s.mu.parts = nil
	return f, nil
}

// Abort gives up what the sink staged. Aborting again, or after Finish, does nothing.
func (s *PageSink) Abort(context.Context) error {
	s.w.forgetSink(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.done {
		return nil
	}
	s.mu.done = true
	return asError(s.discardLocked())
}

func (w *Write) forgetSink(s *PageSink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.sinks, s)
}

func (s *PageSink) discardLocked() error {
	for _, p := range s.mu.parts {
		p.discard(false)
	}
	s.mu.parts = nil
	return s.mu.lanes.discard()
}
