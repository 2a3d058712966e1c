package rest

import (
	"net/http"
	"strings"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// tableColumnJSON describes a column of a table.
type tableColumnJSON struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	ArrowType string `json:"arrowType"`
	Nullable  bool   `json:"nullable"`
	Default   string `json:"default,omitempty"`
	Comment   string `json:"comment,omitempty"`
}

// tableJSON describes a table.
type tableJSON struct {
	Schema        string            `json:"schema"`
	Name          string            `json:"name"`
	Columns       []tableColumnJSON `json:"columns"`
	Properties    propertiesJSON    `json:"properties"`
	Comment       string            `json:"comment,omitempty"`
	Snapshot      uint64            `json:"snapshot"`
	Rows          int64             `json:"rows"`
	Parts         int               `json:"parts"`
	Processed     bool              `json:"processed"`
	MemBytes      int64             `json:"memBytes"`
	ResidentBytes int64             `json:"residentBytes"`
	DiskBytes     int64             `json:"diskBytes"`
	IndexBytes    int64             `json:"indexBytes"`
}

// propertiesJSON are the table properties under their SQL names.
type propertiesJSON struct {
	SortedBy         []string `json:"sorted_by"`
	IndexColumns     []string `json:"index_columns"`
	PartitionedBy    []string `json:"partitioned_by"`
	PrimaryKey       []string `json:"primary_key"`
	SpillCompression string   `json:"spill_compression"`
	BloomFPP         float64  `json:"bloom_fpp,omitempty"`
	AsyncProcessing  *bool    `json:"async_processing"`
}

func tableColumns(t *connector.Table) []tableColumnJSON {
	columns := []tableColumnJSON{}
	for _, c := range t.Definition().Columns {
		columns = append(columns, tableColumnJSON{c.Name, wire.SQLType(c.Type), wire.ArrowType(c.Type), c.Nullable, c.Default, c.Comment})
	}
	return columns
}

func describeTable(t *connector.Table, version uint64) tableJSON {
	def := t.Definition()
	p := propertiesJSON{
		SortedBy: []string{}, IndexColumns: []string{}, PartitionedBy: []string{}, PrimaryKey: []string{},
		SpillCompression: def.Properties.Codec.String(), BloomFPP: def.Properties.BloomFPP, AsyncProcessing: &def.Properties.AsyncProcessing,
	}
	for _, k := range def.Properties.SortedBy {
		c, _ := def.ColumnByID(k.Column)
		p.SortedBy = append(p.SortedBy, connector.SortSpec{Column: quoteName(c.Name), Desc: k.Desc, NullsFirst: k.NullsFirst}.String())
	}
	for _, id := range def.Properties.IndexColumns {
		c, _ := def.ColumnByID(id)
		p.IndexColumns = append(p.IndexColumns, c.Name)
	}
	for _, id := range def.Properties.PartitionedBy {
		c, _ := def.ColumnByID(id)
		p.PartitionedBy = append(p.PartitionedBy, c.Name)
	}
	for _, id := range def.Properties.PrimaryKey {
		c, _ := def.ColumnByID(id)
		p.PrimaryKey = append(p.PrimaryKey, c.Name)
	}
	return tableJSON{
		Schema: t.Name().Schema, Name: t.Name().Table, Columns: tableColumns(t), Properties: p, Comment: def.Comment, Snapshot: version,
		Rows: t.Rows(), Parts: len(t.Parts()), Processed: t.Processed(), MemBytes: t.MemBytes(), ResidentBytes: t.ResidentBytes(),
		DiskBytes: t.DiskBytes(), IndexBytes: t.IndexBytes(),
	}
}

// quoteName quotes a name that is not a plain word, so that ParseSortSpec reads it back.
func quoteName(name string) string {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return name
}

func (h *Handler) listTables(w http.ResponseWriter, r *http.Request) error {
	values, err := known(r, "maxResults", "pageToken")
	if err != nil {
		return err
	}
	snapshot, schema, err := h.schemaOf(r)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	type entry struct {
		Schema string `json:"schema"`
		Name   string `json:"name"`
		Rows   int64  `json:"rows"`
	}
	byName := map[string]entry{}
	names := []string{}
	for _, t := range snapshot.Tables(schema) {
		byName[t.Name().Table] = entry{t.Name().Schema, t.Name().Table, t.Rows()}
		names = append(names, t.Name().Table)
	}
	sortFold(names)
	names, next, err := page(values, names)
	if err != nil {
		return err
	}
	tables := make([]entry, len(names))
	for i, name := range names {
		tables[i] = byName[name]
	}
	return h.ok(w, withNext(map[string]any{"tables": tables, "snapshot": snapshot.Version()}, next))
}

// createRequest is the body of a table's creation.
type createRequest struct {
	Name        string           `json:"name"`
	Columns     []createColumn   `json:"columns"`
	Properties  createProperties `json:"properties"`
	Comment     string           `json:"comment"`
	IfNotExists bool             `json:"ifNotExists"`
	OrReplace   bool             `json:"orReplace"`
}

type createColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // SQL's or Arrow's name
	Nullable *bool  `json:"nullable"`
	Default  string `json:"default"`
	Comment  string `json:"comment"`
}

// createProperties are the properties of a table to create; spill_compression may also be a boolean, as in SQL.
type createProperties struct {
	SortedBy         []string   `json:"sorted_by"`
	IndexColumns     []string   `json:"index_columns"`
	PartitionedBy    []string   `json:"partitioned_by"`
	PrimaryKey       []string   `json:"primary_key"`
	SpillCompression *jsonValue `json:"spill_compression"`
	BloomFPP         *float64   `json:"bloom_fpp"`
	AsyncProcessing  *bool      `json:"async_processing"`
}

func (c createRequest) spec(schema string) (connector.TableSpec, error) {
	spec := connector.TableSpec{
		Name: connector.TableName{Schema: schema, Table: c.Name}, Comment: c.Comment,
		IndexColumns: c.Properties.IndexColumns, PartitionedBy: c.Properties.PartitionedBy, PrimaryKey: c.Properties.PrimaryKey,
		AsyncProcessing: c.Properties.AsyncProcessing,
	}
	if v := c.Properties.SpillCompression; v != nil {
		spec.SpillCompression = string(*v)
	}
	var err error
	if spec.SortedBy, err = sortSpecs(c.Properties.SortedBy); err != nil {
		return spec, err
	}
	if c.Properties.BloomFPP != nil {
		spec.BloomFPP = *c.Properties.BloomFPP
	}
	spec.Columns, err = columnSpecs(c.Columns)
	return spec, err
}

func columnSpecs(columns []createColumn) ([]connector.ColumnSpec, error) {
	var specs []connector.ColumnSpec
	for _, col := range columns {
		t, err := wire.ParseType(col.Type)
		if err != nil {
			return nil, connector.Errorf(connector.CodeTypeNotSupported, "column %q: %s", col.Name, err)
		}
		specs = append(specs, connector.ColumnSpec{
			Name: col.Name, Type: t, NotNull: col.Nullable != nil && !*col.Nullable,
			Default: col.Default, Comment: col.Comment,
		})
	}
	return specs, nil
}

func (h *Handler) createTable(w http.ResponseWriter, r *http.Request) error {
	schema, err := parameter(r, "schema")
	if err != nil {
		return err
	}
	var request createRequest
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	spec, err := request.spec(schema)
	if err != nil {
		return err
	}
	created, err := h.o.Connector.CreateTable(r.Context(), spec, connector.CreateOptions{IfNotExists: request.IfNotExists, OrReplace: request.OrReplace})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return h.sendTable(w, spec.Name, status)
}

func (h *Handler) sendTable(w http.ResponseWriter, name connector.TableName, status int) error {
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	t, err := snapshot.Table(name)
	if err != nil {
		return err
	}
	h.sendJSON(w, status, describeTable(t, snapshot.Version()))
	return nil
}

func (h *Handler) getTable(w http.ResponseWriter, r *http.Request) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	return h.sendTable(w, name, http.StatusOK)
}

// headTable answers 204 or 404 without a body.
func (h *Handler) headTable(w http.ResponseWriter, r *http.Request) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	if _, err := snapshot.Table(name); err != nil {
		w.WriteHeader(wire.Classify(err).HTTP)
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) dropTable(w http.ResponseWriter, r *http.Request) error {
	values, err := known(r, "ifExists")
	if err != nil {
		return err
	}
	ifExists, err := flag(values, "ifExists")
	if err != nil {
		return err
	}
	name, err := tableName(r)
	if err != nil {
		return err
	}
	if err := h.o.Connector.DropTable(r.Context(), name, ifExists); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *Handler) listParts(w http.ResponseWriter, r *http.Request) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	snapshot := h.o.Connector.Snapshot()
	defer snapshot.Close()
	t, err := snapshot.Table(name)
	if err != nil {
		return err
	}
	parts := t.Parts()
	if parts == nil {
		parts = []connector.PartInfo{}
	}
	return h.ok(w, map[string]any{"parts": parts, "snapshot": snapshot.Version()})
}

func (h *Handler) truncate(w http.ResponseWriter, r *http.Request) error {
	return h.change(w, r, func(name connector.TableName) error { return h.o.Connector.TruncateTable(r.Context(), name) })
}

// process answers when every part of the table is processed.
func (h *Handler) process(w http.ResponseWriter, r *http.Request) error {
	return h.change(w, r, func(name connector.TableName) error { return h.o.Connector.Process(r.Context(), name) })
}

// change runs an action on the table of the path and answers with the table.
func (h *Handler) change(w http.ResponseWriter, r *http.Request, do func(connector.TableName) error) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	if err := h.noBody(w, r); err != nil {
		return err
	}
	if err := do(name); err != nil {
		return err
	}
	return h.sendTable(w, name, http.StatusOK)
}
