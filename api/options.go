package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// The authentication modes.
const (
	AuthNone     = "none"     // nobody is asked; loopback addresses only
	AuthInsecure = "insecure" // nobody is asked; any address
)

// Options configure a Server. The zero value serves both interfaces on free loopback ports.
type Options struct {
	// HTTPListen and FlightListen are host:port; port 0 takes a free one. Default 127.0.0.1:0.
	HTTPListen, FlightListen string
	// FlightAdvertise is the location that GET /v1/config tells for Flight; empty is the address listened on.
	FlightAdvertise string
	// AuthMode is AuthNone (default) or AuthInsecure.
	AuthMode string
	// TLS serves both interfaces encrypted; nil is plaintext.
	TLS *tls.Config
	// Grace is how long Shutdown lets running work go on (default 30 s). A context that ends earlier cuts it short.
	Grace time.Duration
	// MaxRunning bounds calls and requests that run at a time (default 1024), MaxSessions the Flight sessions that live by cookie
	// (default 4096), MaxPrepared the prepared statements of all clients (default 4096).
	MaxRunning, MaxSessions, MaxPrepared int
	// MaxMessageBytes bounds an incoming Flight message (default 256 MiB), MaxRequestBytes a JSON body (default 16 MiB),
	// MaxUploadBytes an uploaded file (0 = no limit), MaxResultBytes a result (0 = no limit).
	MaxMessageBytes                                 int
	MaxRequestBytes, MaxUploadBytes, MaxResultBytes int64
	// TicketTTL is how long a planned result waits to be read (default 5 minutes).
	TicketTTL time.Duration
	// TempDir takes uploads that must be read at random; empty is the system's.
	TempDir string
	// Version, Commit and DuckDB are what clients are told about the server.
	Version, Commit, DuckDB string
	// Log receives what no client can be told; nil is slog.Default().
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.HTTPListen == "" {
		o.HTTPListen = "127.0.0.1:0"
	}
	if o.FlightListen == "" {
		o.FlightListen = "127.0.0.1:0"
	}
	if o.AuthMode == "" {
		o.AuthMode = AuthNone
	}
	if o.Grace == 0 {
		o.Grace = 30 * time.Second
	}
	if o.MaxRunning == 0 {
		o.MaxRunning = 1024
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = 256 << 20
	}
	if o.MaxRequestBytes == 0 {
		o.MaxRequestBytes = 16 << 20
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// Validate reports every fault of the options at once.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	switch o.AuthMode {
	case AuthNone, AuthInsecure:
	default:
		errs = append(errs, fmt.Errorf("auth mode %q is neither %s nor %s", o.AuthMode, AuthNone, AuthInsecure))
	}
	for _, l := range []struct{ name, address string }{{"http", o.HTTPListen}, {"flight", o.FlightListen}} {
		host, _, err := net.SplitHostPort(l.address)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s listen address %q: %w", l.name, l.address, err))
			continue
		}
		if o.AuthMode == AuthNone && !isLoopback(host) {
			errs = append(errs, fmt.Errorf("%s listen address %q is not a loopback address and there is no authentication: "+
				"listen on 127.0.0.1, or write auth.mode: insecure to let everybody in", l.name, l.address))
		}
	}
	if o.Grace < 0 || o.MaxRunning < 0 || o.MaxSessions < 0 || o.MaxPrepared < 0 || o.MaxMessageBytes < 0 || o.MaxRequestBytes < 0 ||
		o.MaxUploadBytes < 0 || o.MaxResultBytes < 0 || o.TicketTTL < 0 {
		errs = append(errs, errors.New("limits and times must not be negative"))
	}
	return errors.Join(errs...)
}

// isLoopback says that only this machine can reach the host. A name counts only if it is localhost; an empty host means
// every address.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
