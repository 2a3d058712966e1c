package flightsrv

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/memconn/memconn/api/drain"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// Guard surrounds every call of the Flight service: it admits the call at the gate, authenticates it, recovers panics, maps
// errors and reports the outcome. Other services on the server (health, reflection) pass it untouched.
type Guard struct {
	Gate *drain.Gate
	// Authenticate checks the call's metadata and may put an identity into the context; nil lets everybody in. Its error is the
	// call's.
	Authenticate func(ctx context.Context, md metadata.MD) (context.Context, error)
	// Observe is told of every call when it ends; may be nil.
	Observe func(method string, code codes.Code, took time.Duration)
	Log     *slog.Logger
}

const flightPrefix = "/arrow.flight.protocol.FlightService/"

// Options gives the server options that install the guard.
func (g Guard) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(g.unary), grpc.ChainStreamInterceptor(g.stream), grpc.StatsHandler(ConnTagger()),
	}
}

func (g Guard) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	err = g.call(ctx, info.FullMethod, func(ctx context.Context) error {
		response, err = handler(ctx, request)
		return err
	})
	return response, err
}

func (g Guard) stream(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return g.call(s.Context(), info.FullMethod, func(ctx context.Context) error {
		return handler(server, &contextStream{s, ctx})
	})
}

// contextStream gives the handler the guard's context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // grpc's streams carry theirs
}

func (s *contextStream) Context() context.Context { return s.ctx }

func (g Guard) call(ctx context.Context, method string, run func(context.Context) error) (err error) {
	name, ours := strings.CutPrefix(method, flightPrefix)
	if !ours {
		return g.recovered(ctx, method, run)
	}
	started := time.Now()
	defer func() {
		err = wire.GRPC(err)
		if g.Observe != nil {
			g.Observe(name, status.Code(err), time.Since(started))
		}
	}()
	ctx, leave, err := g.Gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if g.Authenticate != nil {
		md, _ := metadata.FromIncomingContext(ctx)
		if ctx, err = g.Authenticate(ctx, md); err != nil {
			return err
		}
	}
	return causeOf(ctx, g.recovered(ctx, method, run))
}

// recovered turns a panic into INTERNAL and logs where it was.
func (g Guard) recovered(ctx context.Context, method string, run func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.Log.ErrorContext(ctx, "recovered panic", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = connector.Errorf(connector.CodeInternal, "internal error in %s, the server's log says more", method)
		}
	}()
	return run(ctx)
}
