package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const defaultURL = "grpc://127.0.0.1:8815"

// receiveBytesMax bounds one message from a server; memconn sends 3.5 MiB at most.
const receiveBytesMax = 64 << 20

// addURLFlag lets a command name its server.
func addURLFlag(cmd *cobra.Command, target *string) {
	cmd.Flags().StringVar(target, "url", "", "server, as grpc://host:port or grpc+tls://host:port (default $MEMCONN_URL or "+defaultURL+")")
}

// client speaks Flight SQL to one server.
type client struct {
	*flightsql.Client
	address string
}

// dial connects to address, $MEMCONN_URL or the default, in this order.
func dial(address string) (*client, error) {
	if address == "" {
		address = os.Getenv("MEMCONN_URL")
	}
	if address == "" {
		address = defaultURL
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, usagef("%q is not a server address: write grpc://host:port or grpc+tls://host:port", address)
	}
	options := []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(receiveBytesMax))}
	switch u.Scheme {
	case "grpc", "grpc+tcp":
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	case "grpc+tls":
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})))
	default:
		return nil, usagef("%q: unknown scheme %q; known are grpc and grpc+tls", address, u.Scheme)
	}
	if token := os.Getenv("MEMCONN_TOKEN"); token != "" {
		options = append(options, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoker(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), method, req, reply, cc, opts...)
		}), grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), desc, cc, method, opts...)
		}))
	}
	c, err := flightsql.NewClient(u.Host, nil, nil, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return &client{Client: c, address: address}, nil
}

// answer is what one statement gave. Batches are in order; Release frees them.
type answer struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	rows    int64
	changed int64 // rows changed, -1 when the statement was a query
}

// Release frees the batches.
func (a *answer) Release() {
	for _, b := range a.batches {
		b.Release()
	}
	a.batches = nil
}

// stream runs one statement and hands each batch to consume, which borrows it.
// For a statement without a result, consume is never called and the changed
// rows are returned; for a query they are -1.
func (c *client) stream(ctx context.Context, statement string, schema func(*arrow.Schema) error, consume func(arrow.RecordBatch) error) (int64, error) {
	prepared, err := c.Prepare(ctx, statement)
	if err != nil {
		return 0, c.explain(err)
	}
	defer func() { _ = prepared.Close(context.WithoutCancel(ctx)) }()
	if update, known := prepared.IsUpdate(); known && update {
		changed, err := prepared.ExecuteUpdate(ctx)
		return changed, c.explain(err)
	}
	info, err := prepared.Execute(ctx)
	if err != nil {
		return 0, c.explain(err)
	}
	for i, endpoint := range info.Endpoint {
		if err := c.readEndpoint(ctx, endpoint.Ticket.Ticket, i == 0, schema, consume); err != nil {
			return 0, err
		}
	}
	return -1, nil
}

func (c *client) readEndpoint(ctx context.Context, ticket []byte, first bool, schema func(*arrow.Schema) error, consume func(arrow.RecordBatch) error) error {
	reader, err := c.DoGet(ctx, flightTicket(ticket))
	if err != nil {
		return c.explain(err)
	}
	defer reader.Release()
	if first {
		if err := schema(reader.Schema()); err != nil {
			return err
		}
	}
	for reader.Next() {
		if err := consume(reader.RecordBatch()); err != nil {
			return err
		}
	}
	if err := reader.Err(); err != nil && !errors.Is(err, io.EOF) {
		return c.explain(err)
	}
	return nil
}

// query runs one statement and keeps the whole answer.
func (c *client) query(ctx context.Context, statement string) (*answer, error) {
	a := &answer{}
	changed, err := c.stream(ctx, statement,
		func(s *arrow.Schema) error { a.schema = s; return nil },
		func(b arrow.RecordBatch) error {
			b.Retain()
			a.batches = append(a.batches, b)
			a.rows += b.NumRows()
			return nil
		})
	if err != nil {
		a.Release()
		return nil, err
	}
	a.changed = changed
	return a, nil
}

// explain turns a gRPC error into the text that the server meant for people.
func (c *client) explain(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	if s.Code() == 14 { // Unavailable: nobody answers, or it is shutting down
		return fmt.Errorf("server %s: %s (is 'memconn serve' running there?)", c.address, s.Message())
	}
	return errors.New(s.Message())
}
