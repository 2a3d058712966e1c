package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// answer is the JSON of POST /v1/query.
type answer struct {
	Columns []struct{ Name, Type string } `json:"columns"`
	Rows    [][]any                       `json:"rows"`
	Stats   struct {
		PartsTotal, PartsRead, PageGroupsTotal, PageGroupsRead, RowsTotal, RowsRead, BytesLoaded int64
		Indexes                                                                                  []string
		FastPath                                                                                 bool
		Cube                                                                                     string
	} `json:"stats"`
	UpdateCount *int64 `json:"updateCount"`
	Error       *struct {
		Code, Message string
		Retryable     bool
		Details       map[string]any
	} `json:"error"`
}

// query runs a statement over REST. Errors of the server are in the answer.
func (s *server) query(ctx context.Context, statement string, session map[string]string) (answer, error) {
	var a answer
	body, err := json.Marshal(map[string]any{"sql": statement, "session": session})
	if err != nil {
		return a, err
	}
	status, raw, err := s.do(ctx, http.MethodPost, "/v1/query", "application/json", body)
	if err != nil {
		return a, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&a); err != nil {
		return a, fmt.Errorf("decode %s: %w", raw, err)
	}
	if (status == http.StatusOK) != (a.Error == nil) {
		return a, fmt.Errorf("status %d with body %s", status, raw)
	}
	return a, nil
}

// do sends one request and returns status and body.
func (s *server) do(ctx context.Context, method, path, contentType string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, raw, err
}

// ask runs a statement that must succeed.
func (s *server) ask(t *testing.T, statement string) answer {
	t.Helper()
	a, err := s.query(t.Context(), statement, nil)
	require.NoError(t, err, "%s\nserver: %s", statement, s.log)
	require.Nil(t, a.Error, "%s: %+v", statement, a.Error)
	return a
}

// number runs a statement with one number as its answer.
func (s *server) number(t *testing.T, statement string) int64 {
	t.Helper()
	a := s.ask(t, statement)
	require.Len(t, a.Rows, 1)
	var n int64
	_, err := fmt.Sscan(fmt.Sprint(a.Rows[0][0]), &n)
	require.NoError(t, err)
	return n
}

// refused runs a statement that must fail, and returns code and message.
func (s *server) refused(t *testing.T, statement string) (string, string) {
	t.Helper()
	a, err := s.query(t.Context(), statement, nil)
	require.NoError(t, err, statement)
	require.NotNil(t, a.Error, "%s was accepted: %v", statement, a.Rows)
	return a.Error.Code, a.Error.Message
}
