package flightsrv

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// Options configure a Service; zero fields take the defaults.
type Options struct {
	Engine    *sql.Engine
	Connector *connector.Connector
	// Tickets holds planned results; the caller closes it after the Service.
	Tickets *tickets.Registry
	// Version is what SqlInfo says about the server.
	Version string
	// MaxPrepared bounds the prepared statements of all clients (default 4096), PreparedTTL how long one lives without use
	// (default 1 hour). When there are too many, the one that was idle longest goes.
	MaxPrepared int
	PreparedTTL time.Duration
	// MaxSessions bounds the sessions that live by cookie (default 4096), SessionTTL how long they live without use
	// (default 30 minutes).
	MaxSessions int
	SessionTTL  time.Duration
	// MaxResultBytes ends results that grow larger; 0 is no limit.
	MaxResultBytes int64
	// Discovery is the JSON document of the discovery action.
	Discovery func() ([]byte, error)
	Log       *slog.Logger
}

// Service implements the Flight service. Register it on a grpc.Server that has a Guard.
type Service struct {
	flight.BaseFlightServer
	o        Options
	mem      memory.Allocator
	sql      flight.FlightServer // arrow-go's Flight SQL routing over sqlServer
	sessions *sessionTable
	prepared *preparedTable
}

// New makes a Service. Close frees what clients left behind.
func New(o Options) (*Service, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxPrepared <= 0 {
		o.MaxPrepared = 4096
	}
	if o.PreparedTTL <= 0 {
		o.PreparedTTL = time.Hour
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 4096
	}
	if o.SessionTTL <= 0 {
		o.SessionTTL = 30 * time.Minute
	}
	s := &Service{
		o: o, mem: memory.DefaultAllocator,
		sessions: newSessionTable(o.MaxSessions, o.SessionTTL), prepared: newPreparedTable(o.MaxPrepared, o.PreparedTTL),
	}
	inner := &sqlServer{Service: s}
	inner.Alloc = s.mem
	if err := inner.registerSQLInfo(); err != nil {
		return nil, err
	}
	s.sql = flightsql.NewFlightServerWithAllocator(inner, fileformat.BoundedAllocator(s.mem))
	return s, nil
}

// Register puts the service on a gRPC server.
func (s *Service) Register(r *grpc.Server) { flight.RegisterFlightServiceServer(r, s) }

// Close closes all prepared statements and sessions; no call is running then.
func (s *Service) Close() {
	s.prepared.close()
	s.sessions.close()
}

// Handshake answers every client: without authentication there is nothing to check, but drivers that were given a user name or
// a token insist on getting a token back, in the header or the trailer, and some send no message at all.
func (s *Service) Handshake(stream flight.FlightService_HandshakeServer) error {
	token := metadata.Pairs("authorization", "Bearer anonymous")
	if err := stream.SetHeader(token); err != nil {
		return err
	}
	stream.SetTrailer(token)
	request, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	return stream.Send(&flight.HandshakeResponse{ProtocolVersion: request.GetProtocolVersion()})
}

// stateOf gives the session of a call.
func (s *Service) stateOf(ctx context.Context) *session { return s.sessions.of(ctx) }
