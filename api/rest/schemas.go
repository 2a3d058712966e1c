package rest

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// maxPage bounds a page of a list; it is the default too.
const maxPage = 1000

// page cuts sorted names into pages: the token is the last name of the page before, so entries that come or go in between
// disturb nothing.
func page(values url.Values, names []string) (cut []string, next string, err error) {
	size := maxPage
	if text := values.Get("maxResults"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			return nil, "", wire.Invalid("maxResults %q is not a positive number", text)
		}
		size = min(size, maxPage)
	}
	start := 0
	if token := values.Get("pageToken"); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", wire.Invalid("the pageToken is not one of ours")
		}
		start = sort.Search(len(names), func(i int) bool { return strings.ToLower(names[i]) > string(last) })
	}
	cut = names[start:]
	if len(cut) > size {
		cut = cut[:size]
		next = base64.RawURLEncoding.EncodeToString([]byte(strings.ToLower(cut[size-1])))
	}
	return cut, next, nil
}

// withNext adds the token of the next page when there is one.
func withNext(body map[string]any, next string) map[string]any {
	if next != "" {
		body["nextPageToken"] = next
	}
	return body
}

func (h *Handler) listSchemas(w http.ResponseWriter, r *http.Request) error {
	values, err := known(r, "maxResults", "pageToken")
	if err != nil {
		return err
	}
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	names := append([]string{}, snapshot.Schemas()...)
	sort.Slice(names, func(i, j int) bool { return strings.ToLower(names[i]) < strings.ToLower(names[j]) })
	names, next, err := page(values, names)
	if err != nil {
		return err
	}
	type entry struct {
		Name string `json:"name"`
	}
	schemas := make([]entry, len(names))
	for i, name := range names {
		schemas[i].Name = name
	}
	return h.ok(w, withNext(map[string]any{"schemas": schemas}, next))
}

func (h *Handler) createSchema(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Name        string `json:"name"`
		IfNotExists bool   `json:"ifNotExists"`
	}
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	if err := h.o.Connector.CreateSchema(r.Context(), request.Name, request.IfNotExists); err != nil {
		return err
	}
	h.sendJSON(w, http.StatusCreated, map[string]string{"name": request.Name})
	return nil
}

func (h *Handler) dropSchema(w http.ResponseWriter, r *http.Request) error {
	values, err := known(r, "ifExists", "cascade")
	if err != nil {
		return err
	}
	ifExists, err := flag(values, "ifExists")
	if err != nil {
		return err
	}
	cascade, err := flag(values, "cascade")
	if err != nil {
		return err
	}
	name, err := parameter(r, "schema")
	if err != nil {
		return err
	}
	if err := h.o.Connector.DropSchema(r.Context(), name, ifExists, cascade); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// schemaOf gives the snapshot's tables of the schema in the path; the caller closes the snapshot.
func (h *Handler) schemaOf(r *http.Request) (*connector.Snapshot, string, error) {
	name, err := parameter(r, "schema")
	if err != nil {
		return nil, "", err
	}
	snapshot := h.o.Connector.Snapshot()
	if !snapshot.HasSchema(name) {
		snapshot.Close()
		return nil, "", connector.Errorf(connector.CodeSchemaNotFound, "Schema %s not found", name)
	}
	return snapshot, name, nil
}

// listColumns gives the columns of every table of a schema in one answer.
func (h *Handler) listColumns(w http.ResponseWriter, r *http.Request) error {
	snapshot, schema, err := h.schemaOf(r)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	type entry struct {
		Table   string            `json:"table"`
		Columns []tableColumnJSON `json:"columns"`
	}
	tables := []entry{}
	for _, t := range snapshot.Tables(schema) {
		tables = append(tables, entry{t.Name().Table, tableColumns(t)})
	}
	return h.ok(w, map[string]any{"schema": schema, "snapshot": snapshot.Version(), "tables": tables})
}
