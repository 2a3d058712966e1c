package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/sql"
)

// queryRequest is the body of POST /v1/query.
type queryRequest struct {
	SQL     string            `json:"sql"`
	Params  json.RawMessage   `json:"params"`
	Catalog string            `json:"catalog"`
	Schema  string            `json:"schema"`
	Session map[string]string `json:"session"`
}

// UnmarshalJSON reads session values that are not text (true, 5000) as their text.
func (q *queryRequest) UnmarshalJSON(raw []byte) error {
	var plain struct {
		SQL     string               `json:"sql"`
		Params  json.RawMessage      `json:"params"`
		Catalog string               `json:"catalog"`
		Schema  string               `json:"schema"`
		Session map[string]jsonValue `json:"session"`
	}
	if err := wire.DecodeStrict(bytes.NewReader(raw), &plain); err != nil {
		return err
	}
	*q = queryRequest{SQL: plain.SQL, Params: plain.Params, Catalog: plain.Catalog, Schema: plain.Schema, Session: map[string]string{}}
	for name, value := range plain.Session {
		q.Session[name] = string(value)
	}
	return nil
}

// jsonValue is the text of a JSON scalar.
type jsonValue string

// UnmarshalJSON reads text, a number or a boolean.
func (v *jsonValue) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(v))
	}
	if raw[0] == '{' || raw[0] == '[' || raw[0] == 'n' {
		return wire.Invalid("a session property is text, a number or a boolean, not %s", raw)
	}
	*v = jsonValue(raw)
	return nil
}

func (h *Handler) query(w http.ResponseWriter, r *http.Request) (err error) {
	values, err := known(r, "format")
	if err != nil {
		return err
	}
	format, err := accepted(r, values.Get("format"), formatJSON, fileformat.ArrowStream, fileformat.CSV, fileformat.NDJSON,
		fileformat.Parquet, fileformat.ArrowFile)
	if err != nil {
		return err
	}
	var q queryRequest
	if err := h.body(w, r, &q); err != nil {
		return err
	}
	if q.SQL == "" {
		return wire.Invalid("the request has no sql")
	}
	if err := plan.CheckCatalog(q.Catalog); err != nil {
		return err
	}
	params, err := parseParams(q.Params)
	if err != nil {
		return err
	}
	session := h.o.Engine.NewSession()
	defer session.Close()
	if err := setUp(session, q); err != nil {
		return err
	}
	result, err := session.Execute(r.Context(), q.SQL, params...)
	if err != nil {
		h.o.Metrics.Statement(string(wire.Classify(err).Code), 0, 0, 0)
		return err
	}
	defer func() {
		err = errors.Join(err, result.Close())
		code := "OK"
		if err != nil {
			code = string(wire.Classify(err).Code)
		}
		stats := result.Stats()
		h.o.Metrics.Statement(code, stats.RowsRead, stats.RowsTotal, stats.BytesLoaded)
	}()
	w.Header().Set("X-Memconn-Query-Id", result.QueryID())
	in := rows{result.Schema(), result.Next}
	if format != formatJSON {
		return h.sendRows(w, r, format, in)
	}
	return h.sendJSONRows(w, r, in, func() map[string]any {
		stats := result.Stats()
		if stats.Indexes == nil {
			stats.Indexes = []string{}
		}
		tail := map[string]any{"stats": stats, "queryId": result.QueryID()}
		if n, ok := result.UpdateCount(); ok {
			tail["updateCount"] = n
		}
		return tail
	})
}

func setUp(session *sql.Session, q queryRequest) error {
	if q.Schema != "" {
		if err := session.SetSchema(q.Schema); err != nil {
			return err
		}
	}
	for name, value := range q.Session {
		if err := session.SetProperty(name, value); err != nil {
			return err
		}
	}
	return nil
}

// queryJSON is one running statement.
type queryJSON struct {
	ID      string    `json:"id"`
	SQL     string    `json:"sql"`
	State   string    `json:"state"`
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	Rows    int64     `json:"rows"`
}

func (h *Handler) listQueries(w http.ResponseWriter, _ *http.Request) error {
	queries := []queryJSON{}
	for _, q := range h.o.Engine.Queries() {
		queries = append(queries, queryJSON{q.ID, q.Text, q.State, q.Schema, q.Started, q.Rows})
	}
	return h.ok(w, map[string]any{"queries": queries})
}

func (h *Handler) cancelQuery(w http.ResponseWriter, r *http.Request) error {
	id, err := parameter(r, "id")
	if err != nil {
		return err
	}
	if err := h.o.Engine.Cancel(id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
