package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

type requestIDKey struct{}

// requestID gives the id of the request, which errors carry.
func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// maxRequestID bounds an id that the client gave.
const maxRequestID = 128

func newRequestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return tickets.NewID()
	}
	return id
}

// recorder notes status and whether anything was sent.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// wrap surrounds a route: request id, gate, authentication, recovery, errors, metrics.
func (h *Handler) wrap(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		id := newRequestID(r)
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		rec := &recorder{ResponseWriter: w}
		// The request before on this connection may have left its deadlines.
		clearDeadlines(w)
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		err := h.run(rt, rec, r)
		cut := err != nil && rec.status != 0
		if err != nil && !cut {
			h.sendError(rec, r, err)
		}
		if rec.status == 0 {
			rec.status = http.StatusOK
		}
		h.o.Metrics.HTTP(rt.path, r.Method, rec.status, time.Since(started))
		if cut {
			h.o.Log.InfoContext(r.Context(), "cut response", "requestId", id, "path", r.URL.Path, "error", err.Error())
			// The status is out; closing the connection is the only way to say that the body is not whole.
			panic(http.ErrAbortHandler)
		}
	})
}

// clearDeadlines takes back what results and uploads set. A server that can't set deadlines (a test's recorder) does without.
func clearDeadlines(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{})
	_ = control.SetReadDeadline(time.Time{})
}

// run serves the route; a panic becomes INTERNAL.
func (h *Handler) run(rt route, w *recorder, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.o.Log.ErrorContext(r.Context(), "recovered panic", "requestId", requestID(r), "path", r.URL.Path,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = connector.Errorf(connector.CodeInternal, "internal error, the server's log says more under this request's id")
		}
	}()
	if rt.open {
		return rt.serve(h, w, r)
	}
	ctx, leave, err := h.o.Gate.Enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	r = r.WithContext(ctx)
	if h.o.Authenticate != nil {
		if r, err = h.o.Authenticate(r); err != nil {
			return err
		}
	}
	return rt.serve(h, w, r)
}

func (h *Handler) sendError(w http.ResponseWriter, r *http.Request, err error) {
	p := wire.Classify(err)
	if p.HTTP >= http.StatusInternalServerError && p.HTTP != http.StatusNotImplemented && p.HTTP != http.StatusServiceUnavailable {
		h.o.Log.ErrorContext(r.Context(), "request failed", "requestId", requestID(r), "method", r.Method, "path", r.URL.Path,
			"code", string(p.Code), "error", err.Error())
	}
	for _, name := range []string{"Content-Disposition", "Trailer"} {
		w.Header().Del(name)
	}
	if p.HTTP == http.StatusServiceUnavailable || p.HTTP == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	h.sendJSON(w, p.HTTP, p.Envelope(requestID(r)))
}

// sendJSON writes a JSON response. A failed write means that the client is gone; nobody is left to tell.
func (h *Handler) sendJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		h.o.Log.Error("encode response", "error", err.Error())
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"INTERNAL","message":"encode response","retryable":false,"details":{}},"requestId":""}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// ok answers 200 with JSON.
func (h *Handler) ok(w http.ResponseWriter, v any) error {
	h.sendJSON(w, http.StatusOK, v)
	return nil
}

// body decodes the JSON body strictly.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, v any) error {
	body := &deadlineReader{http.MaxBytesReader(w, r.Body, h.o.MaxJSONBytes), http.NewResponseController(w)}
	return wire.DecodeStrict(body, v)
}

// noBody accepts an empty body and nothing else but an empty JSON object.
func (h *Handler) noBody(w http.ResponseWriter, r *http.Request) error {
	var nothing struct{}
	err := h.body(w, r, &nothing)
	if err != nil && strings.HasPrefix(err.Error(), "the request has no JSON body") {
		return nil
	}
	return err
}

// parameter gives a decoded path variable.
func parameter(r *http.Request, name string) (string, error) {
	value, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil {
		return "", wire.Invalid("the path element %q is not percent-encoded text", mux.Vars(r)[name])
	}
	return value, nil
}

// tableName gives the table that the path names.
func tableName(r *http.Request) (connector.TableName, error) {
	schema, err := parameter(r, "schema")
	if err != nil {
		return connector.TableName{}, err
	}
	table, err := parameter(r, "table")
	return connector.TableName{Schema: schema, Table: table}, err
}

// known refuses query parameters that the route does not have: a misspelt one would be ignored silently.
func known(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, wire.Invalid("the query string is malformed: %s", err)
	}
outer:
	for name := range values {
		for _, k := range names {
			if name == k {
				continue outer
			}
		}
		if len(names) == 0 {
			return nil, wire.Invalid("there is no query parameter %q here: this route has none", name)
		}
		return nil, wire.Invalid("there is no query parameter %q here, known are: %s", name, strings.Join(names, ", "))
	}
	return values, nil
}

// flag reads a boolean query parameter; present without a value is true.
func flag(values url.Values, name string) (bool, error) {
	if !values.Has(name) {
		return false, nil
	}
	switch strings.ToLower(values.Get(name)) {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, wire.Invalid("the query parameter %s is neither true nor false: %q", name, values.Get(name))
}

func (h *Handler) notFound(_ http.ResponseWriter, r *http.Request) error {
	return connector.Errorf(wire.CodeNotFound, "there is nothing at %s, see /v1/openapi.yaml", r.URL.Path)
}

func (h *Handler) methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		probe := r.Clone(r.Context())
		probe.Method = m
		var match mux.RouteMatch
		if h.router.Match(probe, &match) && match.MatchErr == nil {
			allowed = append(allowed, m)
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return connector.Errorf(wire.CodeMethodNotAllowed, "%s is not possible at %s, allowed: %s", r.Method, r.URL.Path, strings.Join(allowed, ", "))
}
