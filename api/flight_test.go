package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
)

var ctx = context.Background()

// read gets the first endpoint's rows as text and checks that both schemas agree.
func read(t *testing.T, c *flightsql.Client, info *flight.FlightInfo) [][]string {
	t.Helper()
	require.Len(t, info.Endpoint, 1)
	rdr, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer rdr.Release()
	promised, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	require.True(t, promised.Equal(rdr.Schema()), "%s\n%s", promised, rdr.Schema())
	rows := [][]string{}
	for rdr.Next() {
		batch := rdr.RecordBatch()
		for i := range int(batch.NumRows()) {
			row := make([]string, batch.NumCols())
			for j, col := range batch.Columns() {
				row[j] = col.ValueStr(i)
			}
			rows = append(rows, row)
		}
	}
	require.NoError(t, rdr.Err())
	return rows
}

func query(t *testing.T, c *flightsql.Client, text string) [][]string {
	t.Helper()
	info, err := c.Execute(ctx, text)
	require.NoError(t, err)
	return read(t, c, info)
}

func requireCode(t *testing.T, want codes.Code, err error) {
	t.Helper()
	require.Equal(t, want, status.Code(err), "%v", err)
}

// batchOf makes one batch of int64 ids and texts.
func batchOf(ids []int64, names []string) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(ids, nil)
	b.Field(1).(*array.StringBuilder).AppendValues(names, nil)
	return b.NewRecordBatch()
}

func TestFlightSQLStatements(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	c := s.Client()
	n, err := c.ExecuteUpdate(ctx, "CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR, d DECIMAL(10,2))")
	require.NoError(t, err)
	require.LessOrEqual(t, n, int64(0))
	n, err = c.ExecuteUpdate(ctx, "INSERT INTO t VALUES (1, 'a', 1.10), (2, NULL, 2.20)")
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	require.Equal(t, [][]string{{"1", "a", "1.1"}, {"2", "(null)", "2.2"}}, query(t, c, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, [][]string{{"2"}}, query(t, c, "SELECT count(*) FROM t"))
	require.Empty(t, query(t, c, "SELECT * FROM t WHERE false"))
	require.Equal(t, [][]string{{"1"}}, query(t, c, "SELECT 1"))
	require.Equal(t, [][]string{{"-719528", "0000-01-01"}}, query(t, c, "SELECT CAST('0000-01-01' AS date) - CAST('1970-01-01' AS date), CAST('0000-01-01' AS date)"))

	// A statement that changes something runs in DoGet, and once.
	info, err := c.Execute(ctx, "INSERT INTO t VALUES (3, 'c', 3)")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"2"}}, query(t, c, "SELECT count(*) FROM t"))
	require.Empty(t, read(t, c, info))
	_, err = c.DoGet(ctx, info.Endpoint[0].Ticket)
	requireCode(t, codes.NotFound, err)
	require.Equal(t, [][]string{{"3"}}, query(t, c, "SELECT count(*) FROM t"))

	for text, want := range map[string]codes.Code{
		"SELEC": codes.InvalidArgument, "SELECT * FROM missing": codes.NotFound, "SELECT nope FROM t": codes.InvalidArgument,
		"CREATE TABLE t (a INT)": codes.AlreadyExists, "SELECT ?": codes.InvalidArgument, "SELECT 1; SELECT 2": codes.InvalidArgument,
	} {
		if strings.HasPrefix(text, "CREATE") {
			_, err = c.ExecuteUpdate(ctx, text)
		} else {
			_, err = c.Execute(ctx, text)
		}
		requireCode(t, want, err)
	}
	// An error in the first batch arrives at once.
	info, err = c.Execute(ctx, "SELECT CAST(name AS INTEGER) FROM t WHERE id = 1")
	require.NoError(t, err)
	rdr, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	if err == nil {
		require.False(t, rdr.Next())
		err = rdr.Err()
		rdr.Release()
	}
	requireCode(t, codes.InvalidArgument, err)

	schema, err := c.GetExecuteSchema(ctx, "SELECT id, d FROM t")
	require.NoError(t, err)
	got, err := flight.DeserializeSchema(schema.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	require.Equal(t, []string{"id", "d"}, []string{got.Field(0).Name, got.Field(1).Name})
	poll, err := c.Client.PollFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte("SELECT 7")})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"7"}}, read(t, c, poll.Info))
}

func TestFlightSQLPrepared(t *testing.T) {
	s := apitest.Start(t, api.Options{MaxPrepared: 50})
	s.Exec("CREATE TABLE t (id BIGINT, name VARCHAR)")
	c := s.Client()
	insert, err := c.Prepare(ctx, "INSERT INTO t VALUES (?, ?)")
	require.NoError(t, err)
	rows := batchOf([]int64{1, 2, 3}, []string{"a", "b", "c"})
	insert.SetParameters(rows)
	n, err := insert.ExecuteUpdate(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	// The Go client sends an empty set of parameters as none at all: nothing runs.
	insert.SetParameters(batchOf(nil, nil))
	_, err = insert.ExecuteUpdate(ctx)
	requireCode(t, codes.InvalidArgument, err)
	require.Equal(t, [][]string{{"3"}}, query(t, c, "SELECT count(*) FROM t"))
	require.NoError(t, insert.Close(ctx))

	_, err = c.Prepare(ctx, "UPDATE_IS_NOT_THERE")
	requireCode(t, codes.InvalidArgument, err)

	q, err := c.Prepare(ctx, "SELECT name FROM t WHERE id = ?")
	require.NoError(t, err)
	require.Equal(t, 1, q.ParameterSchema().NumFields())
	require.Equal(t, "name", q.DatasetSchema().Field(0).Name)
	_, err = q.Execute(ctx)
	requireCode(t, codes.InvalidArgument, err)
	for id, want := range map[int64]string{1: "a", 3: "c"} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "1", Type: arrow.PrimitiveTypes.Int64}}, nil))
		b.Field(0).(*array.Int64Builder).Append(id)
		q.SetParameters(b.NewRecordBatch())
		info, err := q.Execute(ctx)
		require.NoError(t, err)
		require.Equal(t, [][]string{{want}}, read(t, c, info))
	}
	require.NoError(t, q.Close(ctx))
	require.NoError(t, closePrepared(c, q.Handle()), "closing twice is fine")

	// A query whose columns depend on the parameters.
	typed, err := c.Prepare(ctx, "SELECT ? AS x")
	require.NoError(t, err)
	typed.SetParameters(batchOf([]int64{42}, []string{"x"}).NewSlice(0, 1))
	_, err = typed.Execute(ctx)
	requireCode(t, codes.InvalidArgument, err) // two parameters for one
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "1", Type: arrow.PrimitiveTypes.Int64}}, nil))
	b.Field(0).(*array.Int64Builder).Append(42)
	typed.SetParameters(b.NewRecordBatch())
	info, err := typed.Execute(ctx)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"42"}}, read(t, c, info))
	require.NoError(t, typed.Close(ctx))

	// Statements that nobody closes are bounded; the newest still works.
	var last *flightsql.PreparedStatement
	var first *flightsql.PreparedStatement
	for range 60 {
		last, err = c.Prepare(ctx, "SELECT 1")
		require.NoError(t, err)
		if first == nil {
			first = last
		}
	}
	_, err = first.Execute(ctx)
	requireCode(t, codes.NotFound, err)
	info, err = last.Execute(ctx)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1"}}, read(t, c, info))
}

func closePrepared(c *flightsql.Client, handle []byte) error {
	return flightsql.NewPreparedStatement(c, handle).Close(ctx)
}

func TestFlightSQLIngest(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	c := s.Client()
	const (
		create, fail              = flightsql.TableDefinitionOptionsTableNotExistOptionCreate, flightsql.TableDefinitionOptionsTableNotExistOptionFail
		existsFail, append_, swap = flightsql.TableDefinitionOptionsTableExistsOptionFail, flightsql.TableDefinitionOptionsTableExistsOptionAppend, flightsql.TableDefinitionOptionsTableExistsOptionReplace
	)
	ingest := func(missing flightsql.TableDefinitionOptionsTableNotExistOption, exists flightsql.TableDefinitionOptionsTableExistsOption, table string, batches ...arrow.RecordBatch) (int64, error) {
		rdr, err := array.NewRecordReader(batches[0].Schema(), batches)
		require.NoError(t, err)
		defer rdr.Release()
		return c.ExecuteIngest(ctx, rdr, &flightsql.ExecuteIngestOpts{
			Table:                  table,
			TableDefinitionOptions: &flightsql.TableDefinitionOptions{IfNotExist: missing, IfExists: exists},
		})
	}
	b := batchOf([]int64{1, 2}, []string{"a", "b"})
	_, err := ingest(fail, append_, "t", b)
	requireCode(t, codes.NotFound, err)
	n, err := ingest(create, existsFail, "t", b)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	_, err = ingest(create, existsFail, "t", b)
	requireCode(t, codes.AlreadyExists, err)
	n, err = ingest(fail, append_, "t", b, b)
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	require.Equal(t, [][]string{{"6", "9"}}, query(t, c, "SELECT count(*), sum(id) FROM t"))
	_, err = ingest(create, swap, "t", b)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"2"}}, query(t, c, "SELECT count(*) FROM t"))
	_, err = ingest(create, append_, "u", b)
	require.NoError(t, err)
	_, err = ingest(create, append_, "u", b)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"4"}}, query(t, c, "SELECT count(*) FROM u"))
	_, err = ingest(0, 0, "u", b)
	requireCode(t, codes.InvalidArgument, err)
	// A failed load leaves nothing: the second batch holds a value that the column can't.
	s.Exec("CREATE TABLE narrow (id TINYINT, name VARCHAR)")
	_, err = ingest(fail, append_, "narrow", b, batchOf([]int64{1000}, []string{"x"}))
	requireCode(t, codes.InvalidArgument, err)
	require.Equal(t, [][]string{{"0"}}, query(t, c, "SELECT count(*) FROM narrow"))

	// A batch and a result far over 4 MiB.
	ids, names := make([]int64, 50_000), make([]string, 50_000)
	for i := range ids {
		ids[i], names[i] = int64(i), strings.Repeat("x", 150)
	}
	n, err = ingest(create, existsFail, "big", batchOf(ids, names))
	require.NoError(t, err)
	require.EqualValues(t, len(ids), n)
	require.Len(t, query(t, c, "SELECT * FROM big"), len(ids))

	// Floats closer than 1e-5, dictionary-encoded, stay apart.
	for i, f := range []float64{1e-6, 2e-6, 9e-6} {
		dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Float64}
		db := array.NewDictionaryBuilder(memory.DefaultAllocator, dict).(*array.Float64DictionaryBuilder)
		require.NoError(t, db.Append(f))
		arr := db.NewArray()
		batch := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "f", Type: dict}}, nil), []arrow.Array{arr}, 1)
		_, err = ingest(create, append_, "floats", batch)
		require.NoError(t, err, i)
	}
	require.Equal(t, [][]string{{"1e-06"}, {"2e-06"}, {"9e-06"}}, query(t, c, "SELECT f FROM floats ORDER BY f"))
}

func TestFlightSQLMetadata(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec("CREATE SCHEMA sales", "CREATE TABLE sales.orders (id BIGINT NOT NULL, price DECIMAL(12,2))", "CREATE TABLE a_b (x INT)", "CREATE TABLE axb (x INT)")
	c := s.Client()
	get := func(info *flight.FlightInfo, err error) [][]string {
		t.Helper()
		require.NoError(t, err)
		return read(t, c, info)
	}
	require.Equal(t, [][]string{{"memory"}}, get(c.GetCatalogs(ctx)))
	require.Equal(t, [][]string{{"memory", "default"}, {"memory", "sales"}}, get(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{})))
	pattern, none, memory_ := "SAL%", "", "memory"
	require.Equal(t, [][]string{{"memory", "sales"}}, get(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{DbSchemaFilterPattern: &pattern})))
	require.Empty(t, get(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{Catalog: &none})))
	require.Len(t, get(c.GetTables(ctx, &flightsql.GetTablesOpts{Catalog: &memory_})), 3)
	escaped := `a\_b`
	require.Equal(t, [][]string{{"memory", "default", "a_b", "TABLE"}}, get(c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &escaped})))
	wild := `a_b`
	require.Len(t, get(c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &wild})), 2)
	require.Empty(t, get(c.GetTables(ctx, &flightsql.GetTablesOpts{TableTypes: []string{"VIEW"}})))
	require.Equal(t, [][]string{{"TABLE"}, {"VIEW"}}, get(c.GetTableTypes(ctx)))

	info, err := c.GetTables(ctx, &flightsql.GetTablesOpts{IncludeSchema: true, DbSchemaFilterPattern: &pattern})
	require.NoError(t, err)
	rdr, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.True(t, rdr.Next())
	require.True(t, rdr.Schema().Equal(schema_ref.TablesWithIncludedSchema))
	described, err := flight.DeserializeSchema(rdr.RecordBatch().Column(4).(*array.Binary).Value(0), memory.DefaultAllocator)
	require.NoError(t, err)
	require.Equal(t, "DECIMAL(12,2)", described.Field(1).Metadata.ToMap()["ARROW:FLIGHT:SQL:TYPE_NAME"])
	require.False(t, described.Field(0).Nullable)
	rdr.Release()

	ref := flightsql.TableRef{Table: "a_b"}
	require.Empty(t, get(c.GetPrimaryKeys(ctx, ref)))
	require.Empty(t, get(c.GetExportedKeys(ctx, ref)))
	require.Empty(t, get(c.GetImportedKeys(ctx, ref)))
	require.Empty(t, get(c.GetCrossReference(ctx, ref, ref)))
	require.NotEmpty(t, get(c.GetXdbcTypeInfo(ctx, nil)))
	bigint := int32(-5)
	require.Len(t, get(c.GetXdbcTypeInfo(ctx, &bigint)), 2)

	require.Len(t, get(c.GetSqlInfo(ctx, nil)), 12+2+77, "all codes")
	require.Len(t, get(c.GetSqlInfo(ctx, []flightsql.SqlInfo{0, 8, 9999})), 2, "an unknown code does not fail the others")
	require.Empty(t, get(c.GetSqlInfo(ctx, []flightsql.SqlInfo{9999})))
	_, err = c.BeginTransaction(ctx)
	requireCode(t, codes.Unimplemented, err)
}

func TestFlightSQLSessions(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec("CREATE SCHEMA s", "CREATE TABLE s.only_there (x INT)")
	c, other := s.Client(), s.Client()
	set := func(options map[string]any) map[string]*flight.SetSessionOptionsResultError {
		values, err := flight.NewSessionOptionValues(options)
		require.NoError(t, err)
		result, err := c.SetSessionOptions(ctx, &flight.SetSessionOptionsRequest{SessionOptions: values})
		require.NoError(t, err)
		return result.Errors
	}
	require.Empty(t, set(map[string]any{"catalog": "memory", "schema": "s", "enable_indexes": false}))
	require.Empty(t, query(t, c, "SELECT * FROM only_there"))
	_, err := other.Execute(ctx, "SELECT * FROM only_there")
	requireCode(t, codes.NotFound, err)
	bad := set(map[string]any{"nope": "x", "schema": "missing", "catalog": "other"})
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidName, bad["nope"].Value)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidValue, bad["schema"].Value)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidValue, bad["catalog"].Value)
	got, err := c.GetSessionOptions(ctx, &flight.GetSessionOptionsRequest{})
	require.NoError(t, err)
	require.Equal(t, "s", got.SessionOptions["schema"].GetStringValue())
	require.Equal(t, "false", got.SessionOptions["enable_indexes"].GetStringValue())
	// USE works on the same state.
	_, err = c.ExecuteUpdate(ctx, `USE memory."default"`)
	require.NoError(t, err)
	got, err = c.GetSessionOptions(ctx, &flight.GetSessionOptionsRequest{})
	require.NoError(t, err)
	require.Equal(t, "default", got.SessionOptions["schema"].GetStringValue())
	closed, err := c.CloseSession(ctx, &flight.CloseSessionRequest{})
	require.NoError(t, err)
	require.Equal(t, flight.CloseSessionResultClosed, closed.Status)
	// A malformed cookie is no cookie.
	_, err = c.Execute(metadata.AppendToOutgoingContext(ctx, "cookie", "memconn_session=!!!; ;=", "cookie", "==;;memconn_session"), "SELECT 1")
	require.NoError(t, err)
}
