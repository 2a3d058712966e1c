package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
)

func grpcConn(t *testing.T, s *apitest.Server) *grpc.ClientConn {
	conn, err := grpc.NewClient(s.FlightAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o     api.Options
		fails string
	}{
		{api.Options{}, ""},
		{api.Options{HTTPListen: "localhost:0", FlightListen: "[::1]:0"}, ""},
		{api.Options{HTTPListen: "0.0.0.0:8080"}, "not a loopback address"},
		{api.Options{FlightListen: ":8815"}, "not a loopback address"},
		{api.Options{FlightListen: ":8815", AuthMode: api.AuthInsecure}, ""},
		{api.Options{HTTPListen: "nonsense"}, `http listen address "nonsense"`},
		{api.Options{AuthMode: "magic"}, `auth mode "magic"`},
		{api.Options{Grace: -1}, "negative"},
	} {
		err := c.o.Validate()
		if c.fails == "" {
			require.NoError(t, err, "%+v", c.o)
		} else {
			require.ErrorContains(t, err, c.fails)
		}
	}
}

// slowQuery runs long enough to be caught running.
const slowQuery = "SELECT count(*) FROM range(100000) a, range(1000000) b WHERE a.range + b.range = 7"

// waitRunning waits until the engine runs a statement.
func waitRunning(t *testing.T, s *apitest.Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, q := range s.Engine.Queries() {
			if q.State == "running" {
				return true
			}
		}
		return false
	}, 20*time.Second, time.Millisecond)
}

// running counts the statements that run.
func running(s *apitest.Server) int {
	n := 0
	for _, q := range s.Engine.Queries() {
		if q.State == "running" {
			n++
		}
	}
	return n
}

func TestShutdownCancelsAfterGrace(t *testing.T) {
	s := apitest.Start(t, api.Options{Grace: 50 * time.Millisecond})
	c := s.Client()
	info, err := c.Execute(ctx, slowQuery)
	require.NoError(t, err)
	outcome := make(chan error, 1)
	go func() {
		rdr, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
		if err == nil {
			rdr.Next()
			err = rdr.Err()
			rdr.Release()
		}
		outcome <- err
	}()
	waitRunning(t, s)
	require.ErrorContains(t, s.Shutdown(ctx), "1 calls running")
	require.Error(t, <-outcome)
	require.Eventually(t, func() bool { return running(s) == 0 }, 20*time.Second, time.Millisecond)
}

func TestDraining(t *testing.T) {
	s := apitest.Start(t, api.Options{Grace: 20 * time.Second})
	release, held := make(chan struct{}), make(chan error, 1)
	// A request whose body does not end holds the gate open.
	body := &heldBody{release: release}
	go func() {
		request, _ := http.NewRequest(http.MethodPost, "http://"+s.HTTPAddr()+"/v1/query", body)
		response, err := s.HTTP.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		held <- err
	}()
	require.Eventually(t, func() bool {
		return contains(string(s.Do("GET", "/metrics", nil).Body), "memconn_running_calls 1")
	}, 10*time.Second, 5*time.Millisecond)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(ctx) }()
	require.Eventually(t, func() bool { return s.Do("GET", "/v1/health/ready", nil).Status == 503 }, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, 200, s.Do("GET", "/v1/health/live", nil).Status)
	r := s.Do("POST", "/v1/query", map[string]any{"sql": "SELECT 1"})
	require.Equal(t, 503, r.Status)
	require.Equal(t, "SHUTTING_DOWN", r.ErrorCode(t))
	_, err := s.Client().Execute(ctx, "SELECT 1")
	requireCode(t, codes.Unavailable, err)
	close(release)
	require.NoError(t, <-down)
	require.NoError(t, <-held)
}

// heldBody is a request body that ends when release is closed.
type heldBody struct {
	release chan struct{}
	sent    bool
}

func (b *heldBody) Read(p []byte) (int, error) {
	if !b.sent {
		b.sent = true
		return copy(p, `{"sql": "SELECT 1"`), nil
	}
	<-b.release
	return copy(p, "}"), errEOF
}

func TestClientsThatLeaveCancelTheirQueries(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	leaving, leave := context.WithCancel(ctx)
	request, err := http.NewRequestWithContext(leaving, http.MethodPost, "http://"+s.HTTPAddr()+"/v1/query", jsonBody(map[string]any{"sql": slowQuery}))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		response, err := s.HTTP.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		done <- err
	}()
	waitRunning(t, s)
	leave()
	require.Error(t, <-done)
	require.Eventually(t, func() bool { return running(s) == 0 }, 20*time.Second, time.Millisecond)

	c := s.Client()
	info, err := c.Execute(ctx, slowQuery)
	require.NoError(t, err)
	leaving, leave = context.WithCancel(ctx)
	go func() {
		rdr, err := c.DoGet(leaving, info.Endpoint[0].Ticket)
		if err == nil {
			rdr.Next()
			err = rdr.Err()
			rdr.Release()
		}
		done <- err
	}()
	waitRunning(t, s)
	leave()
	require.Error(t, <-done)
	require.Eventually(t, func() bool { return running(s) == 0 }, 20*time.Second, time.Millisecond)

	// Another client cancels by id.
	go func() {
		r := s.Do("POST", "/v1/query", map[string]any{"sql": slowQuery})
		if r.Status == 200 {
			done <- nil
			return
		}
		done <- codeError(r.ErrorCode(t))
	}()
	waitRunning(t, s)
	queries := s.Do("GET", "/v1/queries", nil).JSON(t)["queries"].([]any)
	for _, q := range queries {
		if q := q.(map[string]any); q["state"] == "running" {
			require.Equal(t, 204, s.Do("DELETE", "/v1/queries/"+q["id"].(string), nil).Status)
		}
	}
	require.Equal(t, codeError("CANCELLED"), <-done)
}

type codeError string

func (e codeError) Error() string { return string(e) }
