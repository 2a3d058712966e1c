package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const defaultURL = "grpc://127.0.0.1:8815"

// receiveBytesMax bounds one message from a server; memconn sends 3.5 MiB at most.
const receiveBytesMax = 64 << 20

// serverFlags say which server a client command speaks to, and how.
type serverFlags struct {
	url           string
	ca, cert, key string // PEM files
}

// add gives the command the flags.
func (f *serverFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "server, as grpc://host:port or grpc+tls://host:port (default $MEMCONN_URL or "+defaultURL+")")
	cmd.Flags().StringVar(&f.ca, "tls-ca", "", "PEM file of the authority that signed the server's certificate (default: the system's)")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "PEM file of the client's certificate, when the server asks for one")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "PEM file of the client's key")
}

// tls is the client's side of an encrypted connection.
func (f *serverFlags) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("read --tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca %s holds no certificate", f.ca)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("read --tls-cert and --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// client speaks Flight SQL to one server.
type client struct {
	*flightsql.Client
	address string
}

// dial connects to --url, $MEMCONN_URL or the default, in this order.
func dial(f serverFlags) (*client, error) {
	address := f.url
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
		security, err := f.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(security)))
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
	switch {
	case s.Code() == codes.Canceled:
		return errors.New("the statement was cancelled")
	case s.Code() == codes.Unavailable && strings.Contains(s.Message(), "server preface"):
		return fmt.Errorf("server %s: %s (does it speak TLS? then write grpc+tls://)", c.address, s.Message())
	case s.Code() == codes.Unavailable && strings.Contains(s.Message(), "connect"):
		return fmt.Errorf("server %s: %s (is 'memconn serve' running there?)", c.address, s.Message())
	}
	return errors.New(s.Message())
}
