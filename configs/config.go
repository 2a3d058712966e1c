package configs

import "time"

// Config is the validated configuration of a server. Sizes are bytes.
type Config struct {
	DataDir    string
	HTTP       Listen
	Flight     Flight
	Auth       Auth
	TLS        TLS
	Memory     Memory
	Parts      Parts
	Processing Processing
	Spill      Spill
	SQL        SQL
	Cubes      Cubes
	Limits     Limits
	Shutdown   Shutdown
	Log        Log
}

// Listen is where a server listens, as host:port. Port 0 takes a free port.
type Listen struct {
	Listen string
}

// Flight is where the Flight server listens and what it tells clients.
type Flight struct {
	Listen    string
	Advertise string // URI put into endpoints; empty: clients reuse their connection
}

// Auth says who may connect.
type Auth struct {
	Mode string // none (loopback only) or insecure (any address, no check)
}

// TLS names PEM files; all empty serves plaintext.
type TLS struct {
	Cert, Key, ClientCA string
}

// Cubes says how cubes follow their tables.
type Cubes struct {
	Refresh string // auto: new rows get their cells in the background; manual
}

// Memory bounds everything that the process holds.
type Memory struct {
	BudgetBytes      int64
	EngineShareBytes int64 // part of BudgetBytes that the embedded engine may use
}

// Parts is the shape of stored parts.
type Parts struct {
	PageRows    int
	TargetBytes int64
}

// Processing is how background work runs.
type Processing struct {
	Workers int
	Delay   time.Duration
}

// Spill is how parts reach the disk.
type Spill struct {
	Codec      string // lz4, zstd, none
	Durability string // commit, interval, none
}

// SQL bounds the embedded engine.
type SQL struct {
	Threads          int
	TempDir          string
	StatementTimeout time.Duration // 0: none
	MaxResultBytes   int64         // 0: none
}

// Limits bounds what clients may hold open.
type Limits struct {
	StatementBytes     int64
	Statements         int
	Streams            int
	Sessions           int
	PreparedStatements int
	StagedWrites       int
	StagedWriteTTL     time.Duration
	MessageBytes       int64
	RequestBytes       int64
}

// Shutdown is how the server ends.
type Shutdown struct {
	Grace time.Duration // running work gets this long after SIGTERM
}

// Log is what the server writes to standard error.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // text, json
}
