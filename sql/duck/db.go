package duck

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Options says how the embedded DuckDB is opened. The zero value is usable.
type Options struct {
	// Threads is the number of threads that all queries share; 0 means GOMAXPROCS.
	Threads int
	// MemoryLimitBytes bounds DuckDB's buffers (hash tables, sorts, strings of intermediate results); 0 leaves
	// DuckDB's own default, which is 80 % of the machine.
	MemoryLimitBytes int64
	// TempDir is where DuckDB spills intermediate results; empty switches spilling off. It need not exist.
	TempDir string
	// MaxConns bounds the connections in use at once; Conn waits for a free one. 0 means 256.
	MaxConns int
	// Allocator makes the buffers of result batches; nil means Arrow's Go allocator.
	Allocator memory.Allocator
	// BatchRows is the most rows a result batch holds; 0 means 16384. It is rounded up to DuckDB's vector size.
	BatchRows int
}

const (
	defaultMaxConns  = 256
	defaultBatchRows = 16384
	// maxIdleConns bounds the connections that are kept open without use: opening one costs about 50 microseconds.
	maxIdleConns = 32
)

// Validate reports every option that is out of range.
func (o Options) Validate() error {
	var faults []error
	if o.Threads < 0 {
		faults = append(faults, fmt.Errorf("threads: %d is negative", o.Threads))
	}
	if o.MemoryLimitBytes < 0 {
		faults = append(faults, fmt.Errorf("memory limit: %d bytes is negative", o.MemoryLimitBytes))
	}
	if o.MaxConns < 0 {
		faults = append(faults, fmt.Errorf("connections: %d is negative", o.MaxConns))
	}
	if o.BatchRows < 0 {
		faults = append(faults, fmt.Errorf("batch rows: %d is negative", o.BatchRows))
	}
	return errors.Join(faults...)
}

func (o Options) withDefaults() Options {
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.BatchRows == 0 {
		o.BatchRows = defaultBatchRows
	}
	return o
}

// DB is one embedded in-memory DuckDB. It is safe for concurrent use.
type DB struct {
	opts    Options
	slots   chan struct{} // one token for each connection in use
	closing chan struct{} // closed when Close begins

	mu struct {
		sync.Mutex
		closed   bool
		current  *instance
		outdated []*instance // retired, perhaps not yet freed
		idle     []*rawConn  // of current
		open     map[*Conn]struct{}
	}
}

// Open starts an in-memory DuckDB whose access to files, network and extensions is off and whose configuration is
// locked. The caller closes it.
func Open(o Options) (*DB, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("open the embedded engine: %w", err)
	}
	o = o.withDefaults()
	db := &DB{opts: o, slots: make(chan struct{}, o.MaxConns), closing: make(chan struct{})}
	db.mu.open = make(map[*Conn]struct{})
	in, err := openInstance(o)
	if err != nil {
		return nil, fmt.Errorf("open the embedded engine: %w", err)
	}
	db.mu.current = in
	return db, nil
}

// inspect looks at an error of an instance and passes it on. After an internal error DuckDB refuses everything else, so
// the database is replaced by a fresh one.
func (db *DB) inspect(in *instance, err error) error {
	var query *QueryError
	if !errors.As(err, &query) || query.Kind != KindInternal {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.closed || db.mu.current != in {
		return err
	}
	fresh, openErr := openInstance(db.opts)
	if openErr != nil {
		return errors.Join(err, fmt.Errorf("restart the embedded engine: %w", openErr))
	}
	db.mu.current = fresh
	db.mu.outdated = append(slices.DeleteFunc(db.mu.outdated, func(old *instance) bool {
		select {
		case <-old.closed:
			return true
		default:
			return false
		}
	}), in)
	in.retireNow()
	for _, raw := range db.mu.idle {
		in.disconnect(raw)
	}
	db.mu.idle = nil
	return err
}

// instance gives the one for new work.
func (db *DB) instance() (*instance, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.closed {
		return nil, ErrClosed
	}
	return db.mu.current, nil
}

// Conn returns a connection, waiting for a free one while ctx lasts. The caller closes it.
func (db *DB) Conn(ctx context.Context) (*Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case db.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d connections to the embedded engine: %w", db.opts.MaxConns, context.Cause(ctx))
	case <-db.closing:
		return nil, ErrClosed
	}
	c, err := db.takeConn()
	if err != nil {
		<-db.slots
		return nil, err
	}
	return c, nil
}

// takeConn makes a Conn over an idle or a new DuckDB connection.
func (db *DB) takeConn() (*Conn, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.closed {
		return nil, ErrClosed
	}
	var raw *rawConn
	if n := len(db.mu.idle); n > 0 {
		raw = db.mu.idle[n-1]
		db.mu.idle = db.mu.idle[:n-1]
	} else {
		var err error
		if raw, err = db.mu.current.connect(); err != nil {
			return nil, err
		}
	}
	c := newConn(db, raw)
	db.mu.open[c] = struct{}{}
	return c, nil
}

// putConn takes back the DuckDB connection of a closed Conn.
func (db *DB) putConn(c *Conn) {
	db.mu.Lock()
	delete(db.mu.open, c)
	keep := !db.mu.closed && c.raw.in == db.mu.current && len(db.mu.idle) < maxIdleConns
	if keep {
		db.mu.idle = append(db.mu.idle, c.raw)
	}
	db.mu.Unlock()
	if !keep {
		c.raw.in.disconnect(c.raw)
	}
	<-db.slots
}

// Close interrupts running queries, waits until their calls have returned, closes all that is open and frees the
// database. Handles that are still held answer ErrClosed afterwards. A second Close does nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.mu.closed {
		db.mu.Unlock()
		return nil
	}
	db.mu.closed = true
	close(db.closing)
	open := make([]*Conn, 0, len(db.mu.open))
	for c := range db.mu.open {
		open = append(open, c)
	}
	idle := db.mu.idle
	db.mu.idle = nil
	instances := append(db.mu.outdated, db.mu.current)
	db.mu.Unlock()

	for _, c := range open {
		c.cancel(ErrClosed)
	}
	for _, c := range open {
		_ = c.Close() // never fails: it only frees
	}
	for _, raw := range idle {
		raw.in.disconnect(raw)
	}
	for _, in := range instances {
		in.retireNow()
		<-in.closed // when the last parse in work has ended
	}
	return nil
}

// Version gives the version of the embedded DuckDB, like "v1.5.6".
func Version() string { return bindings.LibraryVersion() }
