package wire_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memconn/memconn/api/drain"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
)

// Every code that the connector declares has its row in the table.
func TestEveryCodeIsMapped(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../connector/errors.go", nil, 0)
	require.NoError(t, err)
	mapped := map[connector.Code]wire.Mapping{}
	for _, m := range wire.Codes() {
		mapped[m.Code] = m
		require.GreaterOrEqual(t, m.HTTP, 400)
		require.NotEqual(t, codes.OK, m.GRPC)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.Contains(t, mapped, connector.Code(text))
			found++
		}
		return true
	})
	require.Greater(t, found, 20)
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err   error
		code  connector.Code
		http  int
		grpc  codes.Code
		retry bool
	}{
		{connector.Errorf(connector.CodeTableNotFound, "x"), "TABLE_NOT_FOUND", 404, codes.NotFound, false},
		{fmt.Errorf("outer: %w", connector.Errorf(connector.CodeMemoryLimitExceeded, "x")), "MEMORY_LIMIT_EXCEEDED", 507, codes.ResourceExhausted, true},
		{drain.ErrClosed, "SHUTTING_DOWN", 503, codes.Unavailable, true},
		{drain.ErrFull, "LIMIT_EXCEEDED", 429, codes.ResourceExhausted, true},
		{context.Canceled, "CANCELLED", 499, codes.Canceled, false},
		{context.DeadlineExceeded, "TIMEOUT", 408, codes.DeadlineExceeded, true},
		{&http.MaxBytesError{Limit: 5}, "REQUEST_TOO_LARGE", 413, codes.ResourceExhausted, false},
		{status.Error(codes.FailedPrecondition, "x"), "INTERNAL", 500, codes.FailedPrecondition, false},
		{status.Error(codes.InvalidArgument, "x"), "INVALID_ARGUMENT", 400, codes.InvalidArgument, false},
		{errors.New("x"), "INTERNAL", 500, codes.Internal, false},
		{&connector.Error{Code: "NEW_ONE", Message: "x"}, "NEW_ONE", 500, codes.Internal, false},
	} {
		p := wire.Classify(c.err)
		require.Equal(t, c.code, p.Code, "%v", c.err)
		require.Equal(t, c.http, p.HTTP, "%v", c.err)
		require.Equal(t, c.retry, p.Retryable, "%v", c.err)
		require.Equal(t, c.grpc, status.Code(wire.GRPC(c.err)), "%v", c.err)
		require.NotNil(t, p.Envelope("id").Error.Details)
	}
	require.NoError(t, wire.GRPC(nil))
}

func TestTypeNames(t *testing.T) {
	for _, dtype := range []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float32, arrow.BinaryTypes.String,
		arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 16}, &arrow.Decimal128Type{Precision: 10, Scale: 2}, &arrow.Decimal256Type{Precision: 50},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, &arrow.TimestampType{Unit: arrow.Nanosecond},
		&arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Vienna"}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, extensions.NewUUIDType(),
	} {
		back, err := wire.ParseType(wire.ArrowType(dtype))
		require.NoError(t, err, dtype)
		require.True(t, arrow.TypeEqual(dtype, back), "%s is not %s", back, dtype)
	}
	for name, want := range map[string]string{"bigint": "int64", " Varchar(20) ": "utf8", "decimal(5)": "decimal(5, 0)", "TIMESTAMP WITH TIME ZONE": "timestamp[us, tz=UTC]", "numeric": "decimal(18, 3)"} {
		got, err := wire.ParseType(name)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	for _, name := range []string{"", "nope", "decimal(0)", "decimal(77)", "decimal(3,4)", "binary(0)", "timestamp[xs]"} {
		_, err := wire.ParseType(name)
		require.Error(t, err, name)
	}
	require.Equal(t, "DECIMAL(10,2)", wire.SQLType(&arrow.Decimal128Type{Precision: 10, Scale: 2}))
	require.Equal(t, "BIGINT[]", wire.SQLType(arrow.ListOf(arrow.PrimitiveTypes.Int64)))
}

func TestConstraints(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "Id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	parse := func(text string) (predicate.Constraint, error) { return wire.ParseConstraint([]byte(text), schema) }
	for _, text := range []string{"", " null ", "{}", `{"columns":[]}`} {
		c, err := parse(text)
		require.NoError(t, err)
		require.True(t, c.IsAll())
	}
	c, err := parse(`{"none":true}`)
	require.NoError(t, err)
	require.True(t, c.IsNone())
	c, err = parse(`{"columns":[{"name":"id","type":"int64","nullAllowed":false,"ranges":[{"low":{"v":"10","incl":true},"high":{"v":"20","incl":false}},{"low":{"v":"1000","incl":false}}]},
		{"name":"name","type":"VARCHAR","nullAllowed":true,"notValues":["x"]}]}`)
	require.NoError(t, err)
	id, ok := c.Domain("Id")
	require.True(t, ok)
	for v, in := range map[int64]bool{9: false, 10: true, 19: true, 20: false, 1000: false, 1001: true} {
		require.Equal(t, in, id.Contains(predicate.Int(v)), v)
	}
	require.False(t, id.NullAllowed())
	name, ok := c.Domain("name")
	require.True(t, ok)
	require.True(t, name.NullAllowed())
	require.False(t, name.Contains(predicate.Bytes("x")))
	require.True(t, name.Contains(predicate.Bytes("y")))
	for _, c := range []struct{ text, fails string }{
		{`{"columns":[{"name":"nope","type":"int64","all":true}]}`, `there is no column "nope"`},
		{`{"columns":[{"name":"id","type":"int32","all":true}]}`, "read the schema again"},
		{`{"columns":[{"name":"id","type":"int64"}]}`, "exactly one of"},
		{`{"columns":[{"name":"id","type":"int64","all":true,"values":[]}]}`, "exactly one of"},
		{`{"columns":[{"name":"id","type":"int64","values":["x"]}]}`, "constraint on column"},
		{`{"columns":[{"name":"id","type":"int64","all":true},{"name":"ID","type":"int64","all":true}]}`, "there twice"},
		{`{"colums":[]}`, "unknown field"},
		{`{`, "cut short"},
		{`[]`, "can't be"},
		{`{} {}`, "more text"},
	} {
		_, err := parse(c.text)
		require.ErrorContains(t, err, c.fails, c.text)
		require.Contains(t, []connector.Code{connector.CodeInvalidArgument, connector.CodeColumnNotFound}, connector.CodeOf(err))
	}
}

func TestProperties(t *testing.T) {
	var spec connector.TableSpec
	for name, value := range map[string]string{"sorted_by": `a, "b c" DESC NULLS FIRST`, "index_columns": `x,"y"`, "primary_key": "", "async_processing": "false", "spill_compression": "ZSTD"} {
		require.NoError(t, wire.SetProperty(&spec, name, value), name)
	}
	require.Len(t, spec.SortedBy, 2)
	require.Equal(t, "b c", spec.SortedBy[1].Column)
	require.Equal(t, []string{"x", "y"}, spec.IndexColumns)
	require.Empty(t, spec.PrimaryKey)
	require.False(t, *spec.AsyncProcessing)
	require.Equal(t, "zstd", spec.SpillCompression)
	for name, value := range map[string]string{"nope": "x", "async_processing": "maybe", "sorted_by": "a SIDEWAYS"} {
		require.Error(t, wire.SetProperty(&spec, name, value), name)
	}
	_, err := wire.ParseScanRequest([]byte(`{"table":"t","limit":-1}`))
	require.ErrorContains(t, err, "negative")
	require.Contains(t, wire.Invalid("x").Error(), "x")
}
