package connector

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// Commit makes exactly the listed fragments visible, in one edit that is durable
// when it returns; what else was staged is given up. Committing again with the same
// fragments gives the same result and does nothing; with others it is CONFLICT.
// After an error that is not about the metadata store the write stays open. ctx only
// bounds the time before the edit and, for a table without async_processing, the wait
// until the rows are processed; their commit stands even then.
func (w *Write) Commit(ctx context.Context, fs ...Fragment) (CommitResult, error) {
	end, err := w.c.begin()
	if err != nil {
		return CommitResult{}, err
	}
	defer end()
	if err := w.startCommit(ctx, fs); err != nil {
		return CommitResult{}, err
	}
	if result, done := w.Committed(); done {
		return result, nil
	}
	result, err := w.publish(fs)
	if err != nil {
		return CommitResult{}, wrap(err, "commit %s", w)
	}
	w.c.jobs.notify(w.def.ID)
	if !w.def.Properties.AsyncProcessing {
		if err := w.c.jobs.wait(ctx, w.def.ID); err != nil {
			// The rows are there and durable: an error would make the caller send them
			// again. The job itself stays visible and is tried again.
			w.c.log.Warn("rows are committed but not processed yet", "table", nameOf(w.def).String(), "error", err)
		}
	}
	return result, nil
}

// startCommit moves the write into writeCommitting, unless it is committed already.
func (w *Write) startCommit(ctx context.Context, fs []Fragment) error {
	for {
		if err := ctx.Err(); err != nil {
			return asError(err)
		}
		w.mu.Lock()
		switch w.mu.state {
		case writeCommitting:
			done := w.mu.done
			w.mu.Unlock()
			select {
			case <-done:
				continue
			case <-ctx.Done():
				return asError(ctx.Err())
			}
		case writeCommitted:
			same := slices.Equal(w.mu.parts, sortedParts(fs))
			w.mu.Unlock()
			if !same {
				return Errorf(CodeConflict, "write %s is committed already, with other fragments", w.id).with("writeId", w.id)
			}
			return nil
		}
		err := w.usableLocked()
		if err == nil {
			err = w.checkFragmentsLocked(fs)
		}
		if err == nil {
			w.mu.state = writeCommitting
			w.mu.done = make(chan struct{})
		}
		w.mu.Unlock()
		return err
	}
}

// checkFragmentsLocked says which fragment is not one that a sink of this write finished.
func (w *Write) checkFragmentsLocked(fs []Fragment) error {
	used := make([]bool, len(w.mu.finished))
	for i, f := range fs {
		at := slices.IndexFunc(w.mu.finished, func(g Fragment) bool {
			return f.WriteID == g.WriteID && f.Task == g.Task && f.Rows == g.Rows && slices.Equal(f.Parts, g.Parts)
		})
		if at < 0 {
			return Errorf(CodeInvalidArgument, "fragment %d (task %q, %d rows) was not finished by a sink of write %s",
				i+1, f.Task, f.Rows, w.id).with("writeId", w.id).with("task", f.Task)
		}
		if used[at] && len(f.Parts) > 0 {
			return Errorf(CodeInvalidArgument, "fragment %d (task %q) is listed twice in the commit of write %s", i+1, f.Task, w.id).
				with("writeId", w.id).with("task", f.Task)
		}
		used[at] = true
	}
	return nil
}

// publish makes the edit and settles the write's staged parts.
func (w *Write) publish(fs []Fragment) (CommitResult, error) {
	parts := sortedParts(fs)
	w.mu.Lock()
	staged := make([]*stagedPart, len(parts))
	for i, id := range parts {
		staged[i] = w.mu.staged[id]
	}
	w.mu.Unlock()
	result := CommitResult{}
	for _, f := range fs {
		result.Rows += f.Rows
	}
	var replaced []uint64
	err := w.c.publisher.publish(func(cur *catalog.Version) (*change, error) {
		ch, old, err := w.plan(cur, staged)
		replaced = old
		if err != nil {
			return nil, err
		}
		result.Version = cur.Number + 1
		if w.persist {
			ch.set(writeKey(w.id), encodeRecord(writeRecord{
				V: recordVersion, Key: w.request.IdempotencyKey, Request: w.request.describe(),
				Parts: parts, Rows: result.Rows, Version: result.Version, Committed: now(),
			}))
		}
		return ch, nil
	})
	if err != nil {
		w.commitFailed()
		return CommitResult{}, err
	}
	w.commitDone(staged, parts, result)
	w.c.jobs.forget(replaced...)
	return result, nil
}

// plan makes the edit of this write.
func (w *Write) plan(cur *catalog.Version, staged []*stagedPart) (*change, []uint64, error) {
	ch := &change{edit: &catalog.Edit{AddParts: map[uint64][]*table.Part{}}}
	id := w.def.ID
	var replaced []uint64
	if w.creates {
		old, err := ch.createTable(cur, w.def, CreateOptions{OrReplace: w.request.CreateOptions.OrReplace})
		if err != nil {
			if w.request.AppendIfExists && CodeOf(err) == CodeTableAlreadyExists {
				err = Errorf(CodeConflict, "table %s was created by someone else while rows were staged for it: write them again", nameOf(w.def)).
					with("table", nameOf(w.def).String())
			}
			return nil, nil, err
		}
		if old != 0 {
			replaced = append(replaced, old)
		}
	} else {
		t, ok := cur.TableByID(id)
		if !ok {
			return nil, nil, Errorf(CodeTableNotFound, "table %s was dropped while rows were written to it", nameOf(w.def)).
				with("schema", w.def.Schema).with("table", w.def.Name)
		}
		if !sameColumns(t.Def, w.def) {
			return nil, nil, Errorf(CodeConflict, "the columns of table %s changed while rows were written to it: write them again", nameOf(t.Def)).
				with("table", nameOf(t.Def).String())
		}
		if w.request.Mode == WriteOverwrite {
			ch.dropAllParts(cur, t)
		}
	}
	for _, s := range staged {
		s.part.SetSequence(cur.Number+1, cur.Number+1)
		ch.addPart(id, s.part, s.rows)
	}
	return ch, replaced, nil
}

// addPart adds a part, whose sequence is set, and its records. rows is the durable form of a part without a file.
func (ch *change) addPart(tableID uint64, p *table.Part, rows []byte) {
	if ch.edit.AddParts == nil {
		ch.edit.AddParts = map[uint64][]*table.Part{}
	}
	ch.edit.AddParts[tableID] = append(ch.edit.AddParts[tableID], p)
	record := partRecord{V: recordVersion, Kind: partInFile, Rows: p.Rows(), Processed: p.Processed()}
	record.Seq[0], record.Seq[1] = p.Sequence()
	if rows != nil {
		record.Kind = partInRows
		ch.set(rowsKey(p.ID()), rows)
	}
	ch.set(partKey(tableID, p.ID()), encodeRecord(record))
}

// sameColumns says whether rows staged for one definition fit the other.
func sameColumns(a, b *table.Definition) bool {
	if a == b {
		return true
	}
	return slices.EqualFunc(a.Columns, b.Columns, func(x, y table.Column) bool {
		return x.ID == y.ID && x.Nullable == y.Nullable && arrow.TypeEqual(x.Type, y.Type)
	})
}

// commitFailed opens the write again, or gives it up when the metadata store failed:
// then nobody knows whether the records are there, so the files must stay.
func (w *Write) commitFailed() {
	unknown := w.c.publisher.failure() != nil
	w.mu.Lock()
	close(w.mu.done)
	w.mu.state = writeOpen
	w.touchLocked()
	if !unknown {
		w.mu.Unlock()
		return
	}
	w.mu.state = writeAborted
	sinks := w.takeSinksLocked()
	staged := w.takeStagedLocked()
	w.mu.Unlock()
	w.c.writes.remove(w, writeAborted)
	for _, s := range sinks {
		_ = s.Abort(context.Background())
	}
	for _, p := range staged {
		p.discard(true)
	}
}

// commitDone hands the published parts to the catalog and gives up the others.
func (w *Write) commitDone(published []*stagedPart, parts []uint64, result CommitResult) {
	w.mu.Lock()
	for _, s := range published {
		delete(w.mu.staged, s.part.ID())
		w.c.written.ingest(s)
		s.settle()
	}
	losers := w.takeStagedLocked()
	sinks := w.takeSinksLocked()
	w.mu.finished = nil
	w.mu.result, w.mu.parts = result, parts
	w.mu.state = writeCommitted
	close(w.mu.done)
	w.mu.Unlock()
	w.c.writes.remove(w, writeCommitted)
	for _, s := range sinks {
		_ = s.Abort(context.Background())
	}
	for _, p := range losers {
		p.discard(false)
	}
}

// Append writes all rows of a reader in one commit, all or nothing. With an
// idempotency key that was committed before, the earlier result is returned and the
// reader is left alone. The reader is borrowed. Errors are those of BeginWrite,
// PageSink.Append and Commit.
func (c *Connector) Append(ctx context.Context, r WriteRequest, rdr array.RecordReader) (CommitResult, error) {
	w, found, err := c.beginWrite(ctx, r, false)
	if err != nil {
		return CommitResult{}, err
	}
	if found {
		if result, ok := w.Committed(); ok {
			return result, nil
		}
		return CommitResult{}, Errorf(CodeConflict, "idempotency key %q is used by a write that still runs: ask again later", r.IdempotencyKey).
			with("writeId", w.ID())
	}
	result, err := w.appendAll(ctx, rdr)
	if err != nil {
		// What the rows suffered from is what the caller needs to know; leftovers of the
		// abort are swept by the next start.
		if abortErr := w.Abort(context.WithoutCancel(ctx)); abortErr != nil && CodeOf(abortErr) != CodeConflict {
			c.log.Warn("a failed write left files behind", "write", w.ID(), "error", abortErr)
		}
		return CommitResult{}, err
	}
	return result, nil
}

func (w *Write) appendAll(ctx context.Context, rdr array.RecordReader) (CommitResult, error) {
	s, err := w.NewSink(ctx, "append")
	if err != nil {
		return CommitResult{}, err
	}
	for rdr.Next() {
		if err := s.Append(ctx, rdr.RecordBatch()); err != nil {
			return CommitResult{}, err
		}
	}
	if err := rdr.Err(); err != nil {
		return CommitResult{}, wrap(err, "read the rows for table %s", w.Table())
	}
	f, err := s.Finish(ctx)
	if err != nil {
		return CommitResult{}, err
	}
	return w.Commit(ctx, f)
}
