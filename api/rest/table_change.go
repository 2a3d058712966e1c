package rest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// changeRequest is the body of a table's change; what is absent stays.
type changeRequest struct {
	Schema     *string           `json:"schema"`
	Name       *string           `json:"name"`
	Comment    *string           `json:"comment"`
	Properties *changeProperties `json:"properties"`

	AddColumns    []createColumn `json:"addColumns"`
	DropColumns   []string       `json:"dropColumns"`
	RenameColumns []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"renameColumns"`
}

// changeProperties are the properties to set; the others stay.
type changeProperties struct {
	SortedBy         *[]string  `json:"sorted_by"`
	IndexColumns     *[]string  `json:"index_columns"`
	PartitionedBy    *[]string  `json:"partitioned_by"`
	PrimaryKey       *[]string  `json:"primary_key"`
	SpillCompression *jsonValue `json:"spill_compression"`
	BloomFPP         *float64   `json:"bloom_fpp"`
	AsyncProcessing  *bool      `json:"async_processing"`
}

func (c changeRequest) change(name connector.TableName) (connector.TableChange, error) {
	change := connector.TableChange{Comment: c.Comment}
	if c.Schema != nil || c.Name != nil {
		to := name
		if c.Schema != nil {
			to.Schema = *c.Schema
		}
		if c.Name != nil {
			to.Table = *c.Name
		}
		change.RenameTo = &to
	}
	columns, err := columnSpecs(c.AddColumns)
	if err != nil {
		return change, err
	}
	for _, col := range columns {
		change.AddColumns = append(change.AddColumns, connector.ColumnAdd{Column: col})
	}
	for _, col := range c.DropColumns {
		change.DropColumns = append(change.DropColumns, connector.ColumnDrop{Name: col})
	}
	for _, r := range c.RenameColumns {
		change.RenameColumns = append(change.RenameColumns, connector.ColumnRename{From: r.From, To: r.To})
	}
	if c.Properties != nil {
		return change, c.Properties.set(&change)
	}
	return change, nil
}

func (p changeProperties) set(change *connector.TableChange) error {
	if p.PartitionedBy != nil || p.PrimaryKey != nil {
		return connector.Errorf(connector.CodeNotSupported, "the table properties partitioned_by and primary_key cannot be changed: make a new table")
	}
	if p.SortedBy != nil {
		specs, err := sortSpecs(*p.SortedBy)
		if err != nil {
			return err
		}
		change.SortedBy = &specs
	}
	change.IndexColumns, change.BloomFPP, change.AsyncProcessing = p.IndexColumns, p.BloomFPP, p.AsyncProcessing
	if p.SpillCompression != nil {
		text := string(*p.SpillCompression)
		change.SpillCompression = &text
	}
	return nil
}

// sortSpecs reads the entries of sorted_by.
func sortSpecs(texts []string) ([]connector.SortSpec, error) {
	var specs []connector.SortSpec
	for _, text := range texts {
		s, err := connector.ParseSortSpec(text)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// changeTable changes a table in one edit and answers with it, under its new name.
func (h *Handler) changeTable(w http.ResponseWriter, r *http.Request) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	var request changeRequest
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	change, err := request.change(name)
	if err != nil {
		return err
	}
	if err := h.o.Connector.AlterTable(r.Context(), name, change); err != nil {
		return err
	}
	if change.RenameTo != nil {
		name = *change.RenameTo
	}
	return h.sendTable(w, name, http.StatusOK)
}

// tableOf gives the table of the path in a snapshot, which the caller closes.
func (h *Handler) tableOf(r *http.Request) (*connector.Snapshot, *connector.Table, error) {
	name, err := tableName(r)
	if err != nil {
		return nil, nil, err
	}
	snapshot := h.o.Connector.Snapshot()
	t, err := snapshot.Table(name)
	if err != nil {
		snapshot.Close()
		return nil, nil, err
	}
	return snapshot, t, nil
}

func (h *Handler) listIndexes(w http.ResponseWriter, r *http.Request) error {
	snapshot, t, err := h.tableOf(r)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	return h.ok(w, map[string]any{"indexes": t.Indexes(), "snapshot": snapshot.Version()})
}

// createIndex answers when the index is known; it is built in the background.
func (h *Handler) createIndex(w http.ResponseWriter, r *http.Request) error {
	name, err := tableName(r)
	if err != nil {
		return err
	}
	var request struct {
		Name        string `json:"name"`
		Column      string `json:"column"`
		IfNotExists bool   `json:"ifNotExists"`
	}
	if err := h.body(w, r, &request); err != nil {
		return err
	}
	spec := connector.IndexSpec{Name: request.Name, Table: name, Column: request.Column, IfNotExists: request.IfNotExists}
	if err := h.o.Connector.CreateIndex(r.Context(), spec); err != nil {
		return err
	}
	h.sendJSON(w, http.StatusCreated, map[string]string{"name": request.Name})
	return nil
}

func (h *Handler) dropIndex(w http.ResponseWriter, r *http.Request) error {
	index, err := parameter(r, "index")
	if err != nil {
		return err
	}
	snapshot, t, err := h.tableOf(r)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for _, i := range t.Indexes() {
		if i.Name != "" && strings.EqualFold(i.Name, index) {
			if err := h.o.Connector.DropIndex(r.Context(), t.Name().Schema, index, false); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return connector.Errorf(connector.CodeIndexNotFound, "table %s has no index %q", t.Name(), index)
}

// columnStatisticsJSON is what is known of a column; distinct is null when it is not.
type columnStatisticsJSON struct {
	Name          string  `json:"name"`
	DataSize      int64   `json:"dataSize"`
	Distinct      *int64  `json:"distinct"`
	Nulls         int64   `json:"nulls"`
	NullsFraction float64 `json:"nullsFraction"`
	Low           *string `json:"low"`
	High          *string `json:"high"`
	LowExact      bool    `json:"lowExact"`
	HighExact     bool    `json:"highExact"`
}

// statistics answers GET, and POST with the rows that a constraint is estimated to leave.
func (h *Handler) statistics(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Constraint json.RawMessage `json:"constraint"`
	}
	if r.Method == http.MethodPost {
		if err := h.body(w, r, &request); err != nil {
			return err
		}
	}
	snapshot, t, err := h.tableOf(r)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	stats := t.Statistics()
	answer := map[string]any{"snapshot": snapshot.Version(), "rows": stats.Rows, "memBytes": t.MemBytes(), "diskBytes": t.DiskBytes()}
	if r.Method == http.MethodPost {
		constraint, err := wire.ParseConstraint(request.Constraint, t.ArrowSchema())
		if err != nil {
			return err
		}
		if answer["estimatedRows"], err = snapshot.Estimate(r.Context(), t.Name(), constraint); err != nil {
			return err
		}
	}
	columns := make([]columnStatisticsJSON, len(stats.Columns))
	for i, c := range stats.Columns {
		columns[i] = columnStatisticsJSON{
			Name: c.Column, DataSize: c.DataSize, Nulls: c.Nulls, NullsFraction: c.NullsFraction(stats.Rows), Low: c.Low, High: c.High,
			LowExact: c.Low != nil && !c.LowTruncated, HighExact: c.High != nil && !c.HighTruncated,
		}
		if c.Distinct >= 0 {
			columns[i].Distinct = &c.Distinct
		}
	}
	answer["columns"] = columns
	return h.ok(w, answer)
}
