package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// Server is a running server and what it stands on.
type Server struct {
	*api.Server
	Engine    *sql.Engine
	Connector *connector.Connector
	HTTP      *http.Client
	t         testing.TB
}

// Start opens a connector in a temporary directory, an engine and a server with small bounds; all are closed when the test ends.
func Start(t testing.TB, o api.Options) *Server {
	t.Helper()
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	conn, err := connector.Open(ctx, connector.Options{DataDir: t.TempDir(), MemoryBudgetBytes: 512 << 20, EngineBytes: 128 << 20, Workers: 1, Log: quiet})
	require.NoError(t, err)
	engine, err := sql.New(conn, sql.Options{Threads: 2, MemoryLimitBytes: 128 << 20, TempDir: t.TempDir(), Log: quiet})
	require.NoError(t, err)
	o.Log = quiet
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	server, err := api.New(engine, conn, o)
	require.NoError(t, err)
	require.NoError(t, server.Start(ctx))
	s := &Server{Server: server, Engine: engine, Connector: conn, HTTP: &http.Client{Transport: &http.Transport{}}, t: t}
	t.Cleanup(func() {
		s.HTTP.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // a test that shut it down itself has looked at the error
		require.NoError(t, engine.Close(ctx))
		require.NoError(t, conn.Close(ctx))
	})
	return s
}

// Client connects a Flight SQL client; it is closed when the test ends.
func (s *Server) Client(options ...grpc.DialOption) *flightsql.Client {
	s.t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	client, err := flightsql.NewClient(s.FlightAddr(), nil, nil, options...)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// Exec runs statements through the engine.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	session := s.Engine.NewSession()
	defer session.Close()
	for _, text := range statements {
		result, err := session.Execute(context.Background(), text)
		require.NoError(s.t, err, text)
		for {
			batch, err := result.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(s.t, err, text)
			batch.Release()
		}
		require.NoError(s.t, result.Close())
	}
}

// Response is an HTTP response that was read whole.
type Response struct {
	Status  int
	Header  http.Header
	Trailer http.Header
	Body    []byte
}

// JSON decodes the body with numbers kept as written.
func (r Response) JSON(t testing.TB) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber()
	var v map[string]any
	require.NoError(t, d.Decode(&v), "%s", r.Body)
	return v
}

// ErrorCode gives the code of an error envelope and checks the envelope's shape.
func (r Response) ErrorCode(t testing.TB) string {
	t.Helper()
	v := r.JSON(t)
	require.NotEmpty(t, v["requestId"], "%s", r.Body)
	require.Equal(t, r.Header.Get("X-Request-Id"), v["requestId"])
	e, ok := v["error"].(map[string]any)
	require.True(t, ok, "%s", r.Body)
	require.NotEmpty(t, e["message"])
	require.Contains(t, e, "retryable")
	require.Contains(t, e, "details")
	return e["code"].(string)
}

// Do sends a request. body is bytes or text as they are, nil, or anything else as JSON; headers are pairs.
func (s *Server) Do(method, path string, body any, headers ...string) Response {
	s.t.Helper()
	var reader io.Reader
	contentType := ""
	switch b := body.(type) {
	case nil:
	case []byte:
		reader = bytes.NewReader(b)
	case string:
		reader = bytes.NewReader([]byte(b))
	case io.Reader:
		reader = b
	default:
		text, err := json.Marshal(b)
		require.NoError(s.t, err)
		reader, contentType = bytes.NewReader(text), "application/json"
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.HTTPAddr()+path, reader)
	require.NoError(s.t, err)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.HTTP.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return Response{response.StatusCode, response.Header, response.Trailer, data}
}

// Query runs SQL over REST and gives the rows.
func (s *Server) Query(text string, params ...any) []any {
	s.t.Helper()
	r := s.Do("POST", "/v1/query", map[string]any{"sql": text, "params": params})
	require.Equal(s.t, http.StatusOK, r.Status, "%s: %s", text, r.Body)
	return r.JSON(s.t)["rows"].([]any)
}
