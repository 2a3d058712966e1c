package connector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// Connector is an open data directory. It is safe for concurrent use; Close ends it.
type Connector struct {
	options Options
	log     *slog.Logger

	pool   *spill.Pool
	engine *spill.Reservation // memory of the embedded engine, counted in the pool
	store  *spill.Store
	env    table.Env

	catalog   *catalog.Catalog
	ids       *idSource
	publisher *publisher
	writes    *writeRegistry
	jobs      *jobRunner
	written   writtenBytes
	cubes     cubeCache
	pacer     pacer

	life struct {
		sync.Mutex
		closing bool
		active  sync.WaitGroup // edits that run
		closed  bool           // everything is given back
	}
	closeMu sync.Mutex // one Close at a time
}

// begin counts an edit that Close has to wait for; end uncounts it.
func (c *Connector) begin() (end func(), err error) {
	c.life.Lock()
	defer c.life.Unlock()
	if c.life.closing {
		return nil, errShuttingDown()
	}
	c.life.active.Add(1)
	return c.life.active.Done, nil
}

func errShuttingDown() *Error {
	return Errorf(CodeShuttingDown, "the connector is shutting down: connect again when it has restarted")
}

// Pool gives the memory pool, for callers that hold memory of their own and must
// count it against the same budget.
func (c *Connector) Pool() *spill.Pool { return c.pool }

// Options gives the options in force, defaults filled in.
func (c *Connector) Options() Options { return c.options }

// EvictAll drops every page from memory that is on disk and not in use, and gives
// the bytes freed.
func (c *Connector) EvictAll() int64 { return c.pool.EvictAll() }

// Close ends the connector: new edits are refused with SHUTTING_DOWN, running ones
// end, running jobs may end until ctx is done and are cancelled then, writes that
// are not committed are aborted, and all memory and files are given back. With
// snapshots or scans still open it fails and says how many; Close may be called
// again when they are closed. Closing a closed connector does nothing.
func (c *Connector) Close(ctx context.Context) error {
	c.closeMu.Lock()
	defer c.closeMu.Unlock()
	c.life.Lock()
	closed := c.life.closed
	c.life.closing = true
	c.life.Unlock()
	if closed {
		return nil
	}
	c.jobs.close(ctx)
	c.writes.close()
	c.life.active.Wait()
	if err := c.catalog.Close(); err != nil {
		return wrap(err, "close the connector")
	}
	c.life.Lock()
	c.life.closed = true
	c.life.Unlock()
	if c.engine != nil {
		c.engine.Release()
	}
	return wrap(errors.Join(c.store.Close(), c.pool.Close()), "close the connector")
}

// now is the time that records and expiry use.
func now() time.Time { return time.Now().UTC() }
