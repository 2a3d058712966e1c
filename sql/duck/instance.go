package duck

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// instance is one DuckDB database with its connections. DuckDB gives a database up for good when a statement hits an
// internal error in it ("database has been invalidated"); since nothing is stored in it, DB then goes on with a fresh
// instance, and the old one is closed when its last connection is.
type instance struct {
	opts    Options
	parsers chan *parser  // the reserved connections of Parse and Unparse
	retired chan struct{} // closed when no new work may begin
	closed  chan struct{} // closed when the database is freed

	mu struct {
		sync.Mutex
		handle bindings.Database
		conns  int
		byID   map[uint64]*rawConn // by DuckDB's connection id, for the table function's bind
		retire bool
	}
}

// openInstance opens a locked down in-memory database with memconn_scan and its parsers.
func openInstance(o Options) (*instance, error) {
	handle, err := openDatabase(o)
	if err != nil {
		return nil, err
	}
	in := &instance{opts: o, retired: make(chan struct{}), closed: make(chan struct{})}
	in.mu.handle = handle
	in.mu.byID = make(map[uint64]*rawConn)
	raw, err := in.connect()
	if err != nil {
		bindings.Close(&in.mu.handle)
		return nil, err
	}
	// The set-up's connection is the last to go if anything fails, and its end frees the database then.
	defer in.disconnect(raw)
	if err := in.setUp(raw); err != nil {
		in.retireNow()
		return nil, fmt.Errorf("set up: %w", err)
	}
	return in, nil
}

// openDatabase opens the database with every option that must hold before the first statement runs.
func openDatabase(o Options) (bindings.Database, error) {
	var config bindings.Config
	if bindings.CreateConfig(&config) == bindings.StateError {
		return bindings.Database{}, errors.New("duckdb gave no configuration object")
	}
	defer bindings.DestroyConfig(&config)
	settings := [][2]string{
		{"threads", strconv.Itoa(o.Threads)},
		{"temp_directory", o.TempDir},
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
		{"enable_external_access", "false"},
	}
	if o.MemoryLimitBytes > 0 {
		settings = append(settings, [2]string{"memory_limit", strconv.FormatInt(o.MemoryLimitBytes, 10) + "B"})
	}
	for _, s := range settings {
		if bindings.SetConfig(config, s[0], s[1]) == bindings.StateError {
			return bindings.Database{}, fmt.Errorf("duckdb refused the setting %s = %q", s[0], s[1])
		}
	}
	var handle bindings.Database
	var message string
	if bindings.OpenExt(":memory:", &handle, config, &message) == bindings.StateError {
		bindings.Close(&handle)
		return bindings.Database{}, &QueryError{Kind: KindOther, Message: message}
	}
	return handle, nil
}

// setUps are run before the configuration is locked. Answers must not depend on the zone of the machine.
// top_n_window_elimination rewrites row_number() = 1 over a filter that the scan does not take into a plan that fails
// with an internal error (DuckDB 1.5.6), and such filters are the rule here.
var setUps = []string{
	"SET GLOBAL TimeZone = 'UTC'", "SET GLOBAL disabled_optimizers = 'top_n_window_elimination'", "SET GLOBAL lock_configuration = true",
}

// setUp registers the table function, fixes the configuration, locks it and reserves the parsers.
func (in *instance) setUp(raw *rawConn) error {
	if err := registerScan(raw.handle, in); err != nil {
		return err
	}
	for _, text := range setUps {
		if err := raw.run(text); err != nil {
			return err
		}
	}
	in.parsers = make(chan *parser, parserCount(in.opts.Threads))
	for range cap(in.parsers) {
		p, err := in.newParser()
		if err != nil {
			return err
		}
		in.parsers <- p
	}
	return nil
}

// connect opens a DuckDB connection and makes it known to the table function.
func (in *instance) connect() (*rawConn, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.retire {
		return nil, ErrRestarted
	}
	raw := &rawConn{in: in}
	if bindings.Connect(in.mu.handle, &raw.handle) == bindings.StateError {
		return nil, errors.New("connect to the embedded engine: duckdb refused")
	}
	var client bindings.ClientContext
	bindings.ConnectionGetClientContext(raw.handle, &client)
	raw.id = uint64(bindings.ClientContextGetConnectionId(client))
	bindings.DestroyClientContext(&client)
	in.mu.byID[raw.id] = raw
	in.mu.conns++
	return raw, nil
}

// disconnect closes a connection, and with the last one of a retired instance the database.
func (in *instance) disconnect(raw *rawConn) {
	raw.dropKept()
	bindings.Disconnect(&raw.handle)
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.mu.byID, raw.id)
	in.mu.conns--
	in.closeIfDoneLocked()
}

func (in *instance) closeIfDoneLocked() {
	if in.mu.retire && in.mu.conns == 0 && in.mu.handle.Ptr != nil {
		bindings.Close(&in.mu.handle)
		close(in.closed)
	}
}

// connByID finds the connection on whose behalf DuckDB calls back.
func (in *instance) connByID(id uint64) *rawConn {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.byID[id]
}

func (in *instance) isRetired() bool {
	select {
	case <-in.retired:
		return true
	default:
		return false
	}
}

// retireNow lets no new work begin; parsers and connections in use end with their work. A second call does nothing.
func (in *instance) retireNow() {
	in.mu.Lock()
	if in.mu.retire {
		in.mu.Unlock()
		return
	}
	in.mu.retire = true
	close(in.retired)
	var unused []*parser
	for len(in.parsers) > 0 {
		unused = append(unused, <-in.parsers)
	}
	in.closeIfDoneLocked()
	in.mu.Unlock()
	for _, p := range unused {
		p.close()
	}
}

// putParser takes a parser back.
func (in *instance) putParser(p *parser) {
	in.mu.Lock()
	if !in.mu.retire {
		in.parsers <- p // never blocks: there is room for all
		in.mu.Unlock()
		return
	}
	in.mu.Unlock()
	p.close()
}
