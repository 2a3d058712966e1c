package peer

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Options say how the peer is opened. The zero value is DuckDB's own defaults, in
// memory, without any file.
type Options struct {
	// Threads; 0 is DuckDB's default, the number of cores.
	Threads int
	// MemoryLimitBytes of DuckDB; 0 is its default, most of the machine's memory.
	MemoryLimitBytes int64
	// File is the database file; "" keeps everything in memory.
	File string
	// TempDir takes what does not fit; "" means that nothing may be written.
	TempDir string
}

// settings are the options by DuckDB's names.
func (o Options) settings() map[string]string {
	all := map[string]string{"temp_directory": o.TempDir}
	if o.Threads > 0 {
		all["threads"] = strconv.Itoa(o.Threads)
	}
	if o.MemoryLimitBytes > 0 {
		all["memory_limit"] = strconv.FormatInt(o.MemoryLimitBytes, 10) + "B"
	}
	return all
}

// DB is one DuckDB. It is safe for concurrent use, but for Exec,
// Load and Close, which one goroutine calls.
type DB struct {
	handle bindings.Database
	conn   bindings.Connection // of Exec and Load
}

// Open starts DuckDB. The caller closes it.
func Open(o Options) (*DB, error) {
	var config bindings.Config
	if bindings.CreateConfig(&config) == bindings.StateError {
		return nil, errors.New("open the peer: duckdb gave no configuration object")
	}
	defer bindings.DestroyConfig(&config)
	for name, value := range o.settings() {
		if bindings.SetConfig(config, name, value) == bindings.StateError {
			return nil, fmt.Errorf("open the peer: duckdb refused %s = %q", name, value)
		}
	}
	file := o.File
	if file == "" {
		file = ":memory:"
	}
	db := &DB{}
	var message string
	if bindings.OpenExt(file, &db.handle, config, &message) == bindings.StateError {
		bindings.Close(&db.handle)
		return nil, fmt.Errorf("open the peer: %s", message)
	}
	if bindings.Connect(db.handle, &db.conn) == bindings.StateError {
		bindings.Close(&db.handle)
		return nil, errors.New("open the peer: duckdb refused a connection")
	}
	return db, nil
}

// Close frees the database. All connections must be closed before.
func (db *DB) Close() {
	bindings.Disconnect(&db.conn)
	bindings.Close(&db.handle)
}

// Version gives DuckDB's version, like "v1.5.6".
func Version() string { return bindings.LibraryVersion() }

// Exec runs one statement and throws its result away. When ctx ends the
// statement is interrupted.
func (db *DB) Exec(ctx context.Context, text string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stop := context.AfterFunc(ctx, func() { bindings.Interrupt(db.conn) })
	defer stop()
	var result bindings.Result
	defer bindings.DestroyResult(&result)
	if bindings.Query(db.conn, text, &result) == bindings.StateError {
		return fmt.Errorf("duckdb, %s: %s", text, bindings.ResultError(&result))
	}
	return nil
}

// Conn is one connection, for one goroutine.
type Conn struct {
	handle bindings.Connection
}

// Conn opens a connection. The caller closes it.
func (db *DB) Conn() (*Conn, error) {
	c := &Conn{}
	if bindings.Connect(db.handle, &c.handle) == bindings.StateError {
		return nil, errors.New("duckdb refused a connection")
	}
	return c, nil
}

// Close frees the connection. Its statements must be closed before.
func (c *Conn) Close() { bindings.Disconnect(&c.handle) }

// Stmt is a prepared statement of a connection, for one goroutine.
type Stmt struct {
	handle bindings.PreparedStatement
	text   string
	answer bindings.Type // of the first column
}

// Prepare plans a statement. The caller closes it.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	s := &Stmt{text: text}
	if bindings.Prepare(c.handle, text, &s.handle) == bindings.StateError {
		defer bindings.DestroyPrepare(&s.handle)
		return nil, fmt.Errorf("duckdb, prepare %s: %s", text, bindings.PrepareError(s.handle))
	}
	s.answer = bindings.PreparedStatementColumnType(s.handle, 0)
	return s, nil
}

// Close frees the statement.
func (s *Stmt) Close() { bindings.DestroyPrepare(&s.handle) }

// Int64 runs the statement and gives its answer, one whole number of type BIGINT,
// HUGEINT (its low half) or DOUBLE. Parameters are int64 or string.
func (s *Stmt) Int64(params ...any) (int64, error) {
	var answer int64
	rows := 0
	err := s.run(params, func(chunk bindings.DataChunk, n int) {
		if rows += n; rows == 1 {
			data := bindings.VectorGetData(bindings.DataChunkGetVector(chunk, 0))
			if answer = *(*int64)(data); s.answer == bindings.TypeDouble {
				answer = int64(*(*float64)(data))
			}
		}
	})
	if err == nil && rows != 1 {
		err = fmt.Errorf("duckdb, %s: %d rows, want one", s.text, rows)
	}
	return answer, err
}

// run executes the statement and shows each chunk of its result with its size.
func (s *Stmt) run(params []any, each func(bindings.DataChunk, int)) error {
	for i, p := range params {
		state := bindings.StateError
		switch v := p.(type) {
		case int64:
			state = bindings.BindInt64(s.handle, bindings.IdxT(i+1), v)
		case string:
			state = bindings.BindVarchar(s.handle, bindings.IdxT(i+1), v)
		}
		if state == bindings.StateError {
			return fmt.Errorf("duckdb, %s: parameter %d (%T) was refused", s.text, i+1, p)
		}
	}
	var result bindings.Result
	defer bindings.DestroyResult(&result)
	if bindings.ExecutePrepared(s.handle, &result) == bindings.StateError {
		return fmt.Errorf("duckdb, %s: %s", s.text, bindings.ResultError(&result))
	}
	for {
		chunk := bindings.FetchChunk(result)
		if chunk.Ptr == nil {
			return nil
		}
		each(chunk, int(bindings.DataChunkGetSize(chunk)))
		bindings.DestroyDataChunk(&chunk)
	}
}
