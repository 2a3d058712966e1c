package configs

import "time"

// kind is how the text of a value is read.
type kind uint8

const (
	kindText kind = iota
	kindChoice
	kindInt
	kindBytes   // 512MiB, 64kB, 1073741824
	kindShare   // kindBytes or a percentage
	kindPeriod  // Go duration
	kindAddress // host:port
)

// key is one entry of the configuration: its name, default and how it is read
// into a Config. Exactly one of the targets is set, by kind.
type key struct {
	name    string
	kind    kind
	def     string
	choices []string
	min     int64
	text    func(*Config) *string
	num     func(*Config) *int
	bytes   func(*Config) *int64
	period  func(*Config) *time.Duration
}

// keys is the whole configuration (INV-C1). An empty default of a number or a
// size means "derived from the machine", which resolve does.
var keys = []key{
	{name: "data_dir", kind: kindText, def: "./memconn-data", text: func(c *Config) *string { return &c.DataDir }},
	{name: "http.listen", kind: kindAddress, def: "127.0.0.1:8080", text: func(c *Config) *string { return &c.HTTP.Listen }},
	{name: "flight.listen", kind: kindAddress, def: "127.0.0.1:8815", text: func(c *Config) *string { return &c.Flight.Listen }},
	{name: "flight.advertise", kind: kindText, text: func(c *Config) *string { return &c.Flight.Advertise }},
	{name: "auth.mode", kind: kindChoice, def: "none", choices: []string{"none", "insecure"}, text: func(c *Config) *string { return &c.Auth.Mode }},
	{name: "tls.cert", kind: kindText, text: func(c *Config) *string { return &c.TLS.Cert }},
	{name: "tls.key", kind: kindText, text: func(c *Config) *string { return &c.TLS.Key }},
	{name: "tls.client_ca", kind: kindText, text: func(c *Config) *string { return &c.TLS.ClientCA }},
	{name: "memory.budget", kind: kindShare, def: "60%", min: 64 << 20, bytes: func(c *Config) *int64 { return &c.Memory.BudgetBytes }},
	{name: "memory.engine_share", kind: kindShare, def: "30%", min: 16 << 20, bytes: func(c *Config) *int64 { return &c.Memory.EngineShareBytes }},
	{name: "parts.page_rows", kind: kindInt, def: "16384", min: 64, num: func(c *Config) *int { return &c.Parts.PageRows }},
	{name: "parts.target_bytes", kind: kindBytes, def: "256MiB", min: 1 << 20, bytes: func(c *Config) *int64 { return &c.Parts.TargetBytes }},
	{name: "processing.workers", kind: kindInt, min: 1, num: func(c *Config) *int { return &c.Processing.Workers }},
	{name: "processing.delay", kind: kindPeriod, def: "0s", period: func(c *Config) *time.Duration { return &c.Processing.Delay }},
	{name: "spill.codec", kind: kindChoice, def: "lz4", choices: []string{"lz4", "zstd", "none"}, text: func(c *Config) *string { return &c.Spill.Codec }},
	{name: "spill.durability", kind: kindChoice, def: "commit", choices: []string{"commit", "interval", "none"}, text: func(c *Config) *string { return &c.Spill.Durability }},
	{name: "sql.threads", kind: kindInt, min: 1, num: func(c *Config) *int { return &c.SQL.Threads }},
	{name: "sql.temp_dir", kind: kindText, text: func(c *Config) *string { return &c.SQL.TempDir }},
	{name: "sql.statement_timeout", kind: kindPeriod, def: "0s", period: func(c *Config) *time.Duration { return &c.SQL.StatementTimeout }},
	{name: "sql.max_result_bytes", kind: kindBytes, def: "0", bytes: func(c *Config) *int64 { return &c.SQL.MaxResultBytes }},
	{name: "cubes.refresh", kind: kindChoice, def: "auto", choices: []string{"auto", "manual"}, text: func(c *Config) *string { return &c.Cubes.Refresh }},
	{name: "limits.statement_bytes", kind: kindBytes, def: "16MiB", min: 1 << 10, bytes: func(c *Config) *int64 { return &c.Limits.StatementBytes }},
	{name: "limits.statements", kind: kindInt, def: "256", min: 1, num: func(c *Config) *int { return &c.Limits.Statements }},
	{name: "limits.streams", kind: kindInt, def: "1024", min: 1, num: func(c *Config) *int { return &c.Limits.Streams }},
	{name: "limits.sessions", kind: kindInt, def: "4096", min: 1, num: func(c *Config) *int { return &c.Limits.Sessions }},
	{name: "limits.prepared_statements", kind: kindInt, def: "4096", min: 1, num: func(c *Config) *int { return &c.Limits.PreparedStatements }},
	{name: "limits.staged_writes", kind: kindInt, def: "1024", min: 1, num: func(c *Config) *int { return &c.Limits.StagedWrites }},
	{name: "limits.staged_write_ttl", kind: kindPeriod, def: "1h", min: int64(time.Second), period: func(c *Config) *time.Duration { return &c.Limits.StagedWriteTTL }},
	{name: "limits.message_bytes", kind: kindBytes, def: "256MiB", min: 4 << 20, bytes: func(c *Config) *int64 { return &c.Limits.MessageBytes }},
	{name: "limits.request_bytes", kind: kindBytes, def: "64GiB", min: 1 << 20, bytes: func(c *Config) *int64 { return &c.Limits.RequestBytes }},
	{name: "shutdown.grace", kind: kindPeriod, def: "30s", period: func(c *Config) *time.Duration { return &c.Shutdown.Grace }},
	{name: "log.level", kind: kindChoice, def: "info", choices: []string{"debug", "info", "warn", "error"}, text: func(c *Config) *string { return &c.Log.Level }},
	{name: "log.format", kind: kindChoice, def: "text", choices: []string{"text", "json"}, text: func(c *Config) *string { return &c.Log.Format }},
}
