package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/memconn/memconn/api/drain"
	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/flightsrv"
	"github.com/memconn/memconn/api/metrics"
	"github.com/memconn/memconn/api/rest"
	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// Server is a running server. Use New, Start, Shutdown, in this order and once each.
type Server struct {
	o       Options
	gate    *drain.Gate
	tickets *tickets.Registry
	flight  *flightsrv.Service
	health  *health.Server
	grpc    *grpc.Server
	http    *http.Server
	serving sync.WaitGroup

	httpListener, flightListener net.Listener
	failed                       chan error
}

// New makes a server over the engine and the connector, which stay the caller's. Nothing is bound yet.
func New(engine *sql.Engine, conn *connector.Connector, o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{o: o, gate: drain.New(o.MaxRunning), tickets: tickets.New(tickets.Options{TTL: o.TicketTTL}), failed: make(chan error, 2)}
	m := metrics.New(metrics.Sources{Connector: conn, Running: s.gate.Running, Tickets: s.tickets.Len}, o.Version, o.Commit)
	var err error
	s.flight, err = flightsrv.New(flightsrv.Options{
		Engine: engine, Connector: conn, Tickets: s.tickets, Version: o.Version,
		MaxPrepared: o.MaxPrepared, MaxSessions: o.MaxSessions, MaxResultBytes: o.MaxResultBytes,
		Discovery: func() ([]byte, error) { return json.Marshal(s.describe()) }, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	s.grpc = s.newGRPC(m)
	handler := rest.New(rest.Options{
		Engine: engine, Connector: conn, Gate: s.gate, Tickets: s.tickets, Metrics: m,
		Config: func() any { return s.describe() }, MaxJSONBytes: o.MaxRequestBytes, MaxUploadBytes: o.MaxUploadBytes,
		MaxResultBytes: o.MaxResultBytes, TempDir: o.TempDir, Log: o.Log,
	})
	s.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(logWriter{o.Log}, "", 0),
	}
	return s, nil
}

// newGRPC makes the gRPC server: large messages may come in, clients may ping while idle (Java ones do), handlers are guarded.
func (s *Server) newGRPC(m *metrics.Metrics) *grpc.Server {
	guard := flightsrv.Guard{Gate: s.gate, Observe: m.Flight, Log: s.o.Log}
	options := append(guard.Options(),
		grpc.MaxRecvMsgSize(s.o.MaxMessageBytes),
		grpc.MaxConcurrentStreams(uint32(min(s.o.MaxRunning, 1<<20))),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 20 * time.Second, PermitWithoutStream: true}),
		// A peer that vanished without a word is found by pings; its streams then end.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.WaitForHandlers(true))
	if s.o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.o.TLS)))
	}
	server := grpc.NewServer(options...)
	s.flight.Register(server)
	s.health = health.NewServer()
	healthpb.RegisterHealthServer(server, s.health)
	reflection.Register(server)
	return server
}

// logWriter brings what net/http logs into the log.
type logWriter struct {
	log interface{ Info(string, ...any) }
}

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Info("http server", "message", string(p))
	return len(p), nil
}

// Start binds both addresses and serves. On an error nothing is left bound.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	var err error
	if s.httpListener, err = config.Listen(ctx, "tcp", s.o.HTTPListen); err != nil {
		return fmt.Errorf("listen for http: %w", err)
	}
	if s.flightListener, err = config.Listen(ctx, "tcp", s.o.FlightListen); err != nil {
		return errors.Join(fmt.Errorf("listen for flight: %w", err), s.httpListener.Close())
	}
	s.serving.Add(2)
	go func() {
		defer s.serving.Done()
		if err := s.serveHTTP(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve http: %w", err)
		}
	}()
	go func() {
		defer s.serving.Done()
		if err := s.grpc.Serve(s.flightListener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.failed <- fmt.Errorf("serve flight: %w", err)
		}
	}()
	return nil
}

func (s *Server) serveHTTP() error {
	if s.o.TLS == nil {
		return s.http.Serve(s.httpListener)
	}
	s.http.TLSConfig = s.o.TLS.Clone()
	return s.http.ServeTLS(s.httpListener, "", "")
}

// Failed gives the error of a listener that stopped by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// HTTPAddr gives the address that HTTP listens on, host:port. Call it after Start.
func (s *Server) HTTPAddr() string { return s.httpListener.Addr().String() }

// FlightAddr gives the address that Flight listens on, host:port. Call it after Start.
func (s *Server) FlightAddr() string { return s.flightListener.Addr().String() }

// Shutdown stops the server. New work is refused at once (SHUTTING_DOWN; the health checks say not ready), running work goes on
// for the grace period or until ctx ends, then is cancelled. The error is nil when everything finished by itself, else says how
// much was cancelled; the server is gone in both cases.
func (s *Server) Shutdown(ctx context.Context) error {
	s.gate.Close()
	s.health.Shutdown()
	grace, cancel := context.WithTimeout(ctx, s.o.Grace)
	defer cancel()
	var result error
	if err := s.gate.Wait(grace); err != nil {
		result = fmt.Errorf("shut down: the grace period ended with %d calls running; they were cancelled", s.gate.Running())
		s.gate.Cut()
	}
	s.tickets.Close()
	// Connections are closed now, so handlers that wait for a client end too. A handler that ignores its context would keep Shutdown
	// here, which is better than pulling the data away from it.
	s.closeFlight()
	if err := s.closeHTTP(); err != nil {
		result = errors.Join(result, err)
	}
	s.serving.Wait()
	if err := s.gate.Wait(context.WithoutCancel(ctx)); err != nil {
		result = errors.Join(result, err)
	}
	s.flight.Close()
	return result
}

// lastWords is how long answers that are complete may take to reach their clients.
const lastWords = time.Second

// closeFlight lets answers that are being sent get out, briefly, then closes all connections and waits for all handlers.
func (s *Server) closeFlight() {
	late := time.AfterFunc(lastWords, s.grpc.Stop)
	s.grpc.GracefulStop()
	if !late.Stop() {
		s.grpc.Stop()
	}
}

// closeHTTP lets responses that are being written get out, briefly, then closes all connections.
func (s *Server) closeHTTP() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		return s.http.Close()
	}
	return nil
}

// description is GET /v1/config and the discovery action.
type description struct {
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Commit    string            `json:"commit,omitempty"`
	Versions  map[string]string `json:"versions"`
	Catalog   string            `json:"catalog"`
	Addresses map[string]string `json:"addresses"`
	Features  []string          `json:"features"`
	Formats   []string          `json:"formats"`
	Limits    map[string]int64  `json:"limits"`
	Endpoints []string          `json:"endpoints"`
}

func (s *Server) describe() description {
	scheme, grpcScheme := "http://", "grpc://"
	if s.o.TLS != nil {
		scheme, grpcScheme = "https://", "grpc+tls://"
	}
	flightURI := s.o.FlightAdvertise
	if flightURI == "" {
		flightURI = grpcScheme + s.FlightAddr()
	}
	var formats []string
	for _, f := range fileformat.All() {
		formats = append(formats, f.ContentType())
	}
	return description{
		Name: "memconn", Version: s.o.Version, Commit: s.o.Commit, Catalog: "memory",
		Versions:  map[string]string{"go": runtime.Version(), "arrow": arrow.PkgVersion, "duckdb": s.o.DuckDB},
		Addresses: map[string]string{"http": scheme + s.HTTPAddr(), "flight": flightURI},
		Features:  []string{"flight", "flight-sql", "prepared-statements", "bulk-ingest", "staged-writes", "scan-constraints", "scan-aggregations"},
		Formats:   formats,
		Limits: map[string]int64{
			"requestBytes": s.o.MaxRequestBytes, "uploadBytes": s.o.MaxUploadBytes, "resultBytes": s.o.MaxResultBytes,
			"messageBytes": int64(s.o.MaxMessageBytes), "running": int64(s.o.MaxRunning),
		},
		Endpoints: rest.Endpoints(),
	}
}
