package wire_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/internal/hostile"
)

// requestSchema is what the constraints of requests below are over.
var requestSchema = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.PrimitiveTypes.Int64},
	{Name: "s", Type: arrow.BinaryTypes.String},
	{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 4}},
	{Name: "b", Type: &arrow.FixedSizeBinaryType{ByteWidth: 4}},
	{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
}, nil)

// requests are sound scan requests with every kind of domain and an aggregation.
var requests = []string{
	`{"schema":"default","table":"t","columns":["k","s"],"limit":10,"constraint":{"columns":[` +
		`{"name":"k","type":"bigint","nullAllowed":true,"ranges":[{"low":{"v":"1","incl":true},"high":{"v":"900","incl":false}}]},` +
		`{"name":"s","type":"utf8","nullAllowed":false,"values":["a","b"]},{"name":"d","type":"decimal(20,4)","nullAllowed":false,"notValues":["1.5000"]},` +
		`{"name":"b","type":"binary(4)","nullAllowed":false,"all":true},` +
		`{"name":"t","type":"timestamp[us, tz=UTC]","nullAllowed":true,"ranges":[{"low":{"v":"1700000000000000","incl":true}}]}]}}`,
	`{"table":"t","aggregation":{"groupBy":[{"column":"k"}],"aggregates":[{"func":"count_star"}]},"constraint":{"none":true}}`,
	`{"table":"t","constraint":null}`,
}

// readRequest does with the bytes what the server does before it looks at a table.
func readRequest(raw []byte) (wire.ScanRequest, error) {
	r, err := wire.ParseScanRequest(raw)
	if err != nil {
		return r, err
	}
	_, err = wire.ParseConstraint(r.Constraint, requestSchema)
	return r, err
}

// Goal: JSON of requests takes memory for the bytes that came, whatever numbers it names: lengths of types, digits, limits, depth.
// Method: huge counts all over sound requests, then long ones, whose memory is compared with their length.
func TestRequestsAllocateByWhatCame(t *testing.T) {
	_, err := readRequest([]byte(requests[0]))
	require.NoError(t, err)
	for _, text := range requests {
		hostile.Inputs(t, []byte(text), 1<<20, func(bad []byte) { _, _ = readRequest(bad) })
	}
	for _, name := range []string{"binary(2000000000)", "decimal(999999999999,1)", "varchar(99999999999999999999)", "fixed_size_binary[1048576]"} {
		bad := fmt.Appendf(nil, `{"table":"t","constraint":{"columns":[{"name":"b","type":%q,"nullAllowed":false,"values":["x"]}]}}`, name)
		require.LessOrEqual(t, hostile.Allocated(func() { _, err = readRequest(bad) }), uint64(1<<20), name)
		require.Error(t, err, name)
	}
	for _, fill := range []string{`[`, `{"a":`, `"x",`, `1e9999999,`, `{},`} {
		bad := []byte(`{"table":"t","columns":[`)
		for len(bad) < 1<<20 {
			bad = append(bad, fill...)
		}
		require.LessOrEqual(t, hostile.Allocated(func() { _, err = readRequest(bad) }), uint64(64*len(bad)), fill)
		require.Error(t, err, fill)
	}
}

// FuzzScanRequest: any bytes are an error or a request with a table whose constraint can be written out.
func FuzzScanRequest(f *testing.F) {
	for _, text := range requests {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := wire.ParseScanRequest(raw)
		if err != nil {
			return
		}
		require.NotEmpty(t, r.Table)
		c, err := wire.ParseConstraint(r.Constraint, requestSchema)
		if err != nil {
			return
		}
		for _, name := range c.Columns() {
			require.Len(t, requestSchema.FieldIndices(name), 1)
		}
	})
}

// FuzzParseType: any name is an error or a type whose own name gives it again.
func FuzzParseType(f *testing.F) {
	for _, name := range []string{"bigint", "DECIMAL(38,10)", "timestamp[us, tz=UTC]", "T\u0130MESTAMP[s]", "binary(4)", "varchar(3)", "uuid"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		typ, err := wire.ParseType(name)
		if err != nil {
			return
		}
		again, err := wire.ParseType(wire.ArrowType(typ))
		require.NoError(t, err)
		require.True(t, arrow.TypeEqual(typ, again), "%s", typ)
	})
}
