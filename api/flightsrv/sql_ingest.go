package flightsrv

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// DoPutCommandStatementIngest loads a stream into a table in one commit: all rows or none. Options of the command that
// begin with "memconn." are table properties for a table it creates: memconn.sorted_by = "a, b DESC", memconn.index_columns,
// memconn.partitioned_by, memconn.primary_key.
func (s *sqlServer) DoPutCommandStatementIngest(ctx context.Context, cmd flightsql.StatementIngest, rdr flight.MessageReader) (int64, error) {
	request, err := s.ingestRequest(ctx, cmd)
	if err != nil {
		return 0, err
	}
	checked, err := newChecked(ctx, rdr)
	if err != nil {
		return 0, err
	}
	if request.Create != nil {
		if request.Create.Columns, err = columnsOf(checked.Schema()); err != nil {
			return 0, err
		}
	}
	result, err := s.o.Connector.Append(ctx, request, checked)
	if err := checked.prefer(err); err != nil {
		return 0, err
	}
	return result.Rows, nil
}

// ingestRequest turns the four modes into a write request; the columns of a table to create are still open.
func (s *sqlServer) ingestRequest(ctx context.Context, cmd flightsql.StatementIngest) (connector.WriteRequest, error) {
	name := connector.TableName{Schema: cmd.GetSchema(), Table: cmd.GetTable()}
	r := connector.WriteRequest{Mode: connector.WriteAppend}
	if name.Schema == "" {
		name.Schema = s.stateOf(ctx).Schema()
	}
	r.Table = name
	switch {
	case name.Table == "":
		return r, wire.Invalid("the ingest names no table")
	case cmd.GetTemporary():
		return r, connector.Errorf(connector.CodeNotSupported, "temporary tables are not supported")
	}
	if err := plan.CheckCatalog(cmd.GetCatalog()); err != nil {
		return r, err
	}
	if err := noTransaction(cmd.GetTransactionId()); err != nil {
		return r, err
	}
	exists, err := s.exists(name)
	if err != nil {
		return r, err
	}
	o := cmd.GetTableDefinitionOptions()
	create := &connector.TableSpec{Name: name}
	if err := properties(create, cmd.GetOptions()); err != nil {
		return r, err
	}
	switch o.GetIfExists() {
	case flightsql.TableDefinitionOptionsTableExistsOptionFail:
		if exists {
			return r, connector.Errorf(connector.CodeTableAlreadyExists, "Table %s already exists", name)
		}
	case flightsql.TableDefinitionOptionsTableExistsOptionAppend:
		if exists {
			return r, nil
		}
	case flightsql.TableDefinitionOptionsTableExistsOptionReplace:
		r.CreateOptions.OrReplace = true
		if exists {
			r.Create = create
			return r, nil
		}
	default:
		return r, wire.Invalid("the ingest does not say what to do if the table exists")
	}
	switch o.GetIfNotExist() {
	case flightsql.TableDefinitionOptionsTableNotExistOptionCreate:
		r.Create = create
		return r, nil
	case flightsql.TableDefinitionOptionsTableNotExistOptionFail:
		return r, connector.Errorf(connector.CodeTableNotFound, "Table %s not found", name)
	default:
		return r, wire.Invalid("the ingest does not say what to do if the table does not exist")
	}
}

func (s *sqlServer) exists(name connector.TableName) (bool, error) {
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	_, err := snapshot.Table(name)
	switch {
	case err == nil:
		return true, nil
	case connector.CodeOf(err) == connector.CodeTableNotFound:
		return false, nil
	default:
		return false, err
	}
}

func columnsOf(schema *arrow.Schema) ([]connector.ColumnSpec, error) {
	if schema.NumFields() == 0 {
		return nil, wire.Invalid("the stream has no columns, so the table would have none")
	}
	columns := make([]connector.ColumnSpec, schema.NumFields())
	for i, f := range schema.Fields() {
		columns[i] = connector.ColumnSpec{Name: f.Name, Type: f.Type, NotNull: !f.Nullable}
	}
	return columns, nil
}

func properties(spec *connector.TableSpec, options map[string]string) error {
	for key, value := range options {
		property, ours := strings.CutPrefix(key, "memconn.")
		if !ours {
			continue
		}
		if err := wire.SetProperty(spec, property, value); err != nil {
			return err
		}
	}
	return nil
}
