package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// cubeJSON describes a cube.
type cubeJSON struct {
	Schema       string   `json:"schema"`
	Name         string   `json:"name"`
	TableSchema  string   `json:"tableSchema"`
	Table        string   `json:"table"`
	Status       string   `json:"status"`
	Error        string   `json:"error,omitempty"`
	Group        []string `json:"group"`
	Aggregations []string `json:"aggregations"`
	Filter       string   `json:"filter,omitempty"`
	Predicate    string   `json:"predicate"`
	Regions      []string `json:"regions"`
	Segments     int      `json:"segments"`
	Cells        int64    `json:"cells"`
	MemBytes     int64    `json:"memBytes"`
	DiskBytes    int64    `json:"diskBytes"`
	StaleRows    int64    `json:"staleRows"`
	Create       string   `json:"create"`
}

func describeCube(c *connector.Cube) cubeJSON {
	text := sql.CubeTexts(c)
	out := cubeJSON{
		Schema: c.Name().Schema, Name: c.Name().Table, TableSchema: c.Table().Schema, Table: c.Table().Table, Status: string(c.Status()),
		Group: text.Dimensions, Aggregations: text.Aggregations, Predicate: text.Predicate, Regions: c.RegionTexts(), Cells: c.Cells(),
		MemBytes: c.MemBytes(), DiskBytes: c.DiskBytes(), StaleRows: c.StaleRows(), Create: text.Create,
	}
	if err := c.Err(); err != nil {
		out.Error = err.Error()
	}
	if m := c.Manifest(); m != nil {
		out.Filter, out.Segments = m.Definition.FilterText, len(m.Segments)
	}
	for _, list := range []*[]string{&out.Group, &out.Aggregations, &out.Regions} {
		if *list == nil {
			*list = []string{}
		}
	}
	return out
}

func describeCubes(cubes []*connector.Cube) map[string]any {
	list := []cubeJSON{}
	for _, c := range cubes {
		list = append(list, describeCube(c))
	}
	return map[string]any{"cubes": list}
}

func (h *Handler) listCubes(w http.ResponseWriter, _ *http.Request) error {
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	cubes, err := snapshot.Cubes(connector.TableName{})
	if err != nil {
		return err
	}
	return h.ok(w, describeCubes(cubes))
}

func (h *Handler) listTableCubes(w http.ResponseWriter, r *http.Request) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	cubes, err := snapshot.Cubes(name)
	if err != nil {
		return err
	}
	return h.ok(w, describeCubes(cubes))
}

// cubeName reads the cube of the path; its schema is the parameter schema.
func cubeName(r *http.Request) (connector.TableName, error) {
	values, err := known(r, "schema")
	if err != nil {
		return connector.TableName{}, err
	}
	name, err := parameter(r, "cube")
	return connector.TableName{Schema: values.Get("schema"), Table: name}, err
}

func (h *Handler) getCube(w http.ResponseWriter, r *http.Request) error {
	name, err := cubeName(r)
	if err != nil {
		return err
	}
	return h.sendCube(w, name, http.StatusOK)
}

func (h *Handler) sendCube(w http.ResponseWriter, name connector.TableName, status int) error {
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	cube, err := snapshot.Cube(name)
	if err != nil {
		return err
	}
	h.sendJSON(w, status, describeCube(cube))
	return nil
}

// createCubeRequest is the body of POST /v1/cubes. The texts are those of CREATE CUBE.
type createCubeRequest struct {
	Schema       string   `json:"schema"`
	Name         string   `json:"name"`
	TableSchema  string   `json:"tableSchema"`
	Table        string   `json:"table"`
	Aggregations []string `json:"aggregations"`
	Group        []string `json:"group"`
	Filter       string   `json:"filter"`
	Where        string   `json:"where"`
	Physical     string   `json:"physical"`
	IfNotExists  bool     `json:"ifNotExists"`
}

// statement writes the request as SQL; the grammar checks the texts.
func (c createCubeRequest) statement() string {
	var b strings.Builder
	b.WriteString("CREATE CUBE ")
	if c.IfNotExists {
		b.WriteString("IF NOT EXISTS ")
	}
	b.WriteString(sqlName(c.Schema, c.Name) + " ON " + sqlName(c.TableSchema, c.Table))
	b.WriteString(" WITH (AGGREGATIONS = (" + strings.Join(c.Aggregations, ", ") + "), GROUP = (" + strings.Join(c.Group, ", ") + ")")
	if c.Filter != "" {
		b.WriteString(", FILTER = (" + c.Filter + ")")
	}
	if c.Physical != "" {
		b.WriteString(", physical = '" + strings.ReplaceAll(c.Physical, "'", "''") + "'")
	}
	b.WriteString(")")
	if c.Where != "" {
		b.WriteString(" WHERE " + c.Where)
	}
	return b.String()
}

// sqlName quotes a qualified name.
func sqlName(schema, name string) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	if schema == "" {
		schema = connector.DefaultSchema
	}
	return quote(schema) + "." + quote(name)
}

func (h *Handler) createCube(w http.ResponseWriter, r *http.Request) error {
	var c createCubeRequest
	if err := h.body(w, r, &c); err != nil {
		return err
	}
	if c.Name == "" || c.Table == "" || len(c.Aggregations) == 0 {
		return wire.Invalid("a cube needs name, table and aggregations")
	}
	if _, err := h.execute(r, c.statement()); err != nil {
		return err
	}
	return h.sendCube(w, connector.TableName{Schema: c.Schema, Table: c.Name}, http.StatusCreated)
}

// execute runs a statement without rows and gives its count.
func (h *Handler) execute(r *http.Request, statement string) (count int64, err error) {
	session := h.o.Engine.NewSession()
	defer session.Close()
	result, err := session.Execute(r.Context(), statement)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	count, _ = result.UpdateCount()
	return count, nil
}

func (h *Handler) dropCube(w http.ResponseWriter, r *http.Request) error {
	name, err := cubeName(r)
	if err != nil {
		return err
	}
	if err := h.o.Connector.DropCube(r.Context(), name, false); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// insertCubeRequest is the body of POST /v1/cubes/{cube}/insert.
type insertCubeRequest struct {
	Where     string `json:"where"`
	Overwrite bool   `json:"overwrite"`
}

func (h *Handler) insertCube(w http.ResponseWriter, r *http.Request) error {
	name, err := cubeName(r)
	if err != nil {
		return err
	}
	var in insertCubeRequest
	if err := h.body(w, r, &in); err != nil {
		return err
	}
	statement := "INSERT INTO CUBE "
	if in.Overwrite {
		statement = "INSERT OVERWRITE CUBE "
	}
	statement += sqlName(name.Schema, name.Table)
	if in.Where != "" {
		statement += " WHERE " + in.Where
	}
	cells, err := h.execute(r, statement)
	if err != nil {
		return err
	}
	return h.ok(w, map[string]any{"cells": cells})
}

func (h *Handler) reloadCube(w http.ResponseWriter, r *http.Request) error {
	name, err := cubeName(r)
	if err != nil {
		return err
	}
	if err := h.o.Connector.ReloadCube(r.Context(), name); err != nil {
		return err
	}
	return h.sendCube(w, name, http.StatusOK)
}
