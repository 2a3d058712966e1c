package connector_test

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

func TestTablePropertiesAreValidated(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	sorted := func(columns ...string) []connector.SortSpec {
		var specs []connector.SortSpec
		for _, name := range columns {
			specs = append(specs, connector.SortSpec{Column: name})
		}
		return specs
	}
	for name, tt := range map[string]struct {
		change func(*connector.TableSpec)
		code   connector.Code
		texts  []string
	}{
		"sort column missing":  {func(s *connector.TableSpec) { s.SortedBy = sorted("kk") }, connector.CodeInvalidTableProperty, []string{"column kk in sorted_by does not exist, did you mean k?"}},
		"sort column twice":    {func(s *connector.TableSpec) { s.SortedBy = sorted("k", "K") }, connector.CodeInvalidTableProperty, []string{"duplicate column(s) in sorted_by property"}},
		"index column missing": {func(s *connector.TableSpec) { s.IndexColumns = []string{"zzz"} }, connector.CodeInvalidTableProperty, []string{"column zzz in index_columns does not exist"}},
		"index column twice":   {func(s *connector.TableSpec) { s.IndexColumns = []string{"s", "S"} }, connector.CodeInvalidTableProperty, []string{"duplicate column(s) in index_columns property"}},
		"sorted and indexed": {
			func(s *connector.TableSpec) { s.SortedBy = sorted("k"); s.IndexColumns = []string{"k"} }, connector.CodeInvalidTableProperty,
			[]string{"duplicate column(s) in sorted_by and index_columns, sorted_by columns are automatically indexed"},
		},
		"partition column missing": {func(s *connector.TableSpec) { s.PartitionedBy = []string{"zzz"} }, connector.CodeInvalidTableProperty, []string{"column zzz in partition_column does not exist"}},
		"partition column twice":   {func(s *connector.TableSpec) { s.PartitionedBy = []string{"k", "k"} }, connector.CodeInvalidTableProperty, []string{"duplicate column(s) in partition_by property"}},
		"key column missing":       {func(s *connector.TableSpec) { s.PrimaryKey = []string{"zzz"} }, connector.CodeInvalidTableProperty, []string{"column zzz in primary_key does not exist"}},
		"primary key":              {func(s *connector.TableSpec) { s.PrimaryKey = []string{"k"} }, connector.CodeNotSupported, []string{"primary_key"}},
		"compression":              {func(s *connector.TableSpec) { s.SpillCompression = "gzip" }, connector.CodeInvalidTableProperty, []string{"spill_compression", "gzip"}},
		"bloom rate":               {func(s *connector.TableSpec) { s.BloomFPP = 1 }, connector.CodeInvalidTableProperty, []string{"false positive"}},
		"all at once": {func(s *connector.TableSpec) {
			s.SortedBy, s.IndexColumns, s.PartitionedBy = sorted("x1", "k", "k"), []string{"x2"}, []string{"x3"}
		}, connector.CodeInvalidTableProperty, []string{"column x1 in sorted_by", "duplicate column(s) in sorted_by", "column x2 in index_columns", "column x3 in partition_column"}},
		"no columns":     {func(s *connector.TableSpec) { s.Columns = nil }, connector.CodeInvalidArgument, []string{"at least one column"}},
		"repeated name":  {func(s *connector.TableSpec) { s.Columns[1].Name = "K" }, connector.CodeInvalidArgument, []string{"column K is there twice"}},
		"folded name":    {func(s *connector.TableSpec) { s.Columns[0].Name = "\u017f" }, connector.CodeInvalidArgument, []string{"column s is there twice"}},
		"empty name":     {func(s *connector.TableSpec) { s.Columns[1].Name = "" }, connector.CodeInvalidArgument, []string{"the name is empty"}},
		"control name":   {func(s *connector.TableSpec) { s.Name.Table = "a\nb" }, connector.CodeInvalidArgument, []string{"control character"}},
		"long name":      {func(s *connector.TableSpec) { s.Name.Table = strings.Repeat("x", 300) }, connector.CodeInvalidArgument, []string{"255"}},
		"list type":      {func(s *connector.TableSpec) { s.Columns[1].Type = arrow.ListOf(arrow.PrimitiveTypes.Int8) }, connector.CodeTypeNotSupported, []string{"column s", "list"}},
		"no type":        {func(s *connector.TableSpec) { s.Columns[1].Type = nil }, connector.CodeTypeNotSupported, []string{"column s"}},
		"bad default":    {func(s *connector.TableSpec) { s.Columns[0].Default = "'x'" }, connector.CodeInvalidArgument, []string{"column k", "default"}},
		"expr default":   {func(s *connector.TableSpec) { s.Columns[0].Default = "random()" }, connector.CodeInvalidArgument, []string{"not a constant"}},
		"null default":   {func(s *connector.TableSpec) { s.Columns[0].Default = "NULL" }, connector.CodeInvalidArgument, []string{"NOT NULL"}},
		"schema missing": {func(s *connector.TableSpec) { s.Name.Schema = "defaul" }, connector.CodeSchemaNotFound, []string{"Schema defaul not found, did you mean default?"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := kvSpec("t")
			tt.change(&spec)
			_, err := c.CreateTable(t.Context(), spec, connector.CreateOptions{IfNotExists: true})
			requireCode(t, tt.code, err)
			for _, text := range tt.texts {
				require.ErrorContains(t, err, text)
			}
			_, err = c.BeginWrite(t.Context(), connector.WriteRequest{Create: &spec})
			requireCode(t, tt.code, err)
		})
	}
}

// TestDefinitionSurvivesRestart stores every type and property.
func TestDefinitionSurvivesRestart(t *testing.T) {
	fs := vfs.NewMem()
	sync := false
	spec := connector.TableSpec{Name: connector.TableName{Schema: "S1", Table: "Tä"}, SpillCompression: "zstd", AsyncProcessing: &sync, BloomFPP: 0.001, Comment: "all of it"}
	for i, typ := range allTypes() {
		spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: "Col" + string(rune('A'+i)), Type: typ, NotNull: i%2 == 0, Comment: typ.String()})
	}
	spec.Columns[2].Default = "7"
	spec.SortedBy = []connector.SortSpec{{Column: "COLB", Desc: true}, {Column: "colc", NullsFirst: true}}
	spec.IndexColumns = []string{"cold", "cole"}
	c := open(t, hostile(fs))
	require.NoError(t, c.CreateSchema(t.Context(), "S1", false))
	spec.Name.Schema = "s1"
	create(t, c, spec)
	definition := func() (*table.Definition, uint64) {
		s := c.Snapshot()
		defer s.Close()
		got, err := s.Table(connector.TableName{Schema: "s1", Table: "TÄ"})
		require.NoError(t, err)
		return got.Definition(), s.Version()
	}
	before, version := definition()
	require.NoError(t, c.Close(context.Background()))
	c = openClosed(t, hostile(fs))
	after, version2 := definition()
	require.Equal(t, before, after)
	require.Equal(t, version, version2)
	require.Equal(t, "S1", after.Schema)
	require.Equal(t, spill.CodecZstd, after.Properties.Codec)
	require.Equal(t, []string{"default", "S1"}, func() []string { s := c.Snapshot(); defer s.Close(); return s.Schemas() }())
}

func allTypes() []arrow.DataType {
	types := []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
		arrow.FixedWidthTypes.Date32, &arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.Decimal256Type{Precision: 60, Scale: -2},
		&arrow.FixedSizeBinaryType{ByteWidth: 5}, extensions.NewUUIDType(),
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	}
	for _, unit := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		types = append(types, &arrow.TimestampType{Unit: unit}, &arrow.TimestampType{Unit: unit, TimeZone: "Europe/Berlin"})
	}
	return types
}

func TestSchemas(t *testing.T) {
	ctx := context.Background()
	c := openClosed(t, hostile(vfs.NewMem()))
	require.NoError(t, c.CreateSchema(ctx, "Sales", false))
	require.NoError(t, c.CreateSchema(ctx, "SALES", true))
	err := c.CreateSchema(ctx, "sales", false)
	requireCode(t, connector.CodeSchemaAlreadyExists, err)
	require.EqualError(t, err, "Schema already exists sales")
	requireCode(t, connector.CodeInvalidArgument, c.CreateSchema(ctx, "", false))
	requireCode(t, connector.CodeInvalidArgument, c.DropSchema(ctx, "Default", false, true))
	requireCode(t, connector.CodeSchemaNotFound, c.DropSchema(ctx, "nope", false, false))
	require.NoError(t, c.DropSchema(ctx, "nope", true, false))
	spec := kvSpec("t")
	spec.Name.Schema = "sales"
	create(t, c, spec)
	err = c.DropSchema(ctx, "sales", false, false)
	requireCode(t, connector.CodeSchemaNotEmpty, err)
	require.EqualError(t, err, "Schema not empty: Sales")
	require.NoError(t, c.DropSchema(ctx, "sales", false, true))
	s := c.Snapshot()
	defer s.Close()
	require.Equal(t, []string{"default"}, s.Schemas())
	require.False(t, s.HasSchema("sales"))
}

func TestTableNamesAndNearNames(t *testing.T) {
	ctx := context.Background()
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("Orders"))
	_, err := c.CreateTable(ctx, kvSpec("ORDERS"), connector.CreateOptions{})
	requireCode(t, connector.CodeTableAlreadyExists, err)
	require.EqualError(t, err, "Table [default.Orders] already exists")
	created, err := c.CreateTable(ctx, kvSpec("orders"), connector.CreateOptions{IfNotExists: true})
	require.NoError(t, err)
	require.False(t, created)
	err = c.DropTable(ctx, tname("odrers"), false)
	requireCode(t, connector.CodeTableNotFound, err)
	require.ErrorContains(t, err, "did you mean Orders?")
	require.NoError(t, c.DropTable(ctx, tname("odrers"), true))
	require.NoError(t, c.RenameTable(ctx, tname("orders"), tname("ORDERS")))
	s := c.Snapshot()
	require.Equal(t, "ORDERS", s.Tables("")[0].Name().Table)
	_, err = s.Scan(ctx, connector.ScanRequest{Table: tname("orders"), Columns: []string{"kk"}})
	requireCode(t, connector.CodeColumnNotFound, err)
	require.ErrorContains(t, err, "did you mean k?")
	s.Close()
	_, err = s.Scan(ctx, connector.ScanRequest{Table: tname("orders")})
	requireCode(t, connector.CodeInvalidArgument, err)
	requireCode(t, connector.CodeSchemaNotFound, c.RenameTable(ctx, tname("orders"), connector.TableName{Schema: "no", Table: "t"}))
	requireCode(t, connector.CodeTableNotFound, c.TruncateTable(ctx, tname("nothing")))
	requireCode(t, connector.CodeTableNotFound, c.Process(ctx, tname("nothing")))
	_, err = c.BeginWrite(ctx, connector.WriteRequest{Table: tname("nothing")})
	requireCode(t, connector.CodeTableNotFound, err)
}

func TestParseSortSpec(t *testing.T) {
	for text, want := range map[string]connector.SortSpec{
		"a":                      {Column: "a"},
		" a  asc ":               {Column: "a"},
		"a DESC":                 {Column: "a", Desc: true},
		"a desc nulls first":     {Column: "a", Desc: true, NullsFirst: true, NullsSet: true},
		"a NULLS LAST":           {Column: "a", NullsSet: true},
		`"a b" DESC NULLS FIRST`: {Column: "a b", Desc: true, NullsFirst: true, NullsSet: true},
		`"a""b"`:                 {Column: `a"b`},
	} {
		got, err := connector.ParseSortSpec(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "  ", "a DOWN", "a NULLS", "a NULLS FIRST DESC", `"a`, "a ASC DESC", "a b"} {
		_, err := connector.ParseSortSpec(text)
		requireCode(t, connector.CodeInvalidTableProperty, err)
	}
}
