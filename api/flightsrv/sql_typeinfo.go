package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
)

// xdbcType is one row of the type information. Numbers are XdbcDataType's, which are ODBC's and JDBC's.
type xdbcType struct {
	name      string
	code      int32
	size      int32  // digits, characters or bytes; 0 = unknown
	quote     string // literal prefix and suffix
	params    []string
	unsigned  int8 // -1 no number, 0 signed, 1 unsigned
	maxScale  int32
	radix     int32
	sqlType   int32 // verbose code; differs for dates and times
	dateTime  int32 // datetime subcode, 0 = none
	caseAware bool
}

// xdbcTypes is sorted by code, and closest to the code's own type first.
var xdbcTypes = []xdbcType{
	{name: "BOOLEAN", code: -7, size: 1, unsigned: -1, sqlType: -7},
	{name: "TINYINT", code: -6, size: 3, unsigned: 0, radix: 10, sqlType: -6},
	{name: "UTINYINT", code: -6, size: 3, unsigned: 1, radix: 10, sqlType: -6},
	{name: "BIGINT", code: -5, size: 19, unsigned: 0, radix: 10, sqlType: -5},
	{name: "UBIGINT", code: -5, size: 20, unsigned: 1, radix: 10, sqlType: -5},
	{name: "BLOB", code: -3, quote: "'", unsigned: -1, sqlType: -3},
	{name: "UUID", code: 1, size: 36, quote: "'", unsigned: -1, sqlType: 1},
	{name: "DECIMAL", code: 3, size: 38, params: []string{"precision", "scale"}, unsigned: 0, maxScale: 38, radix: 10, sqlType: 3},
	{name: "INTEGER", code: 4, size: 10, unsigned: 0, radix: 10, sqlType: 4},
	{name: "UINTEGER", code: 4, size: 10, unsigned: 1, radix: 10, sqlType: 4},
	{name: "SMALLINT", code: 5, size: 5, unsigned: 0, radix: 10, sqlType: 5},
	{name: "USMALLINT", code: 5, size: 5, unsigned: 1, radix: 10, sqlType: 5},
	{name: "FLOAT", code: 7, size: 7, unsigned: 0, radix: 2, sqlType: 7},
	{name: "DOUBLE", code: 8, size: 15, unsigned: 0, radix: 2, sqlType: 8},
	{name: "VARCHAR", code: 12, quote: "'", params: []string{"length"}, unsigned: -1, sqlType: 12, caseAware: true},
	{name: "DATE", code: 91, size: 10, quote: "'", unsigned: -1, sqlType: 9, dateTime: 1},
	{name: "TIME", code: 92, size: 15, quote: "'", unsigned: -1, maxScale: 6, sqlType: 9, dateTime: 2},
	{name: "TIMESTAMP", code: 93, size: 26, quote: "'", unsigned: -1, maxScale: 6, sqlType: 9, dateTime: 3},
	{name: "TIMESTAMP_NS", code: 93, size: 29, quote: "'", unsigned: -1, maxScale: 9, sqlType: 9, dateTime: 3},
	{name: "TIMESTAMP WITH TIME ZONE", code: 93, size: 32, quote: "'", unsigned: -1, maxScale: 6, sqlType: 9, dateTime: 3},
}

func (s *sqlServer) GetFlightInfoXdbcTypeInfo(_ context.Context, _ flightsql.GetXdbcTypeInfo, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.XdbcTypeInfo)
}

func (s *sqlServer) DoGetXdbcTypeInfo(_ context.Context, cmd flightsql.GetXdbcTypeInfo) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.rows(schema_ref.XdbcTypeInfo, func(b *array.RecordBuilder) {
		for _, t := range xdbcTypes {
			if want := cmd.GetDataType(); want == nil || *want == t.code {
				t.append(b)
			}
		}
	})
}

// append adds the 19 columns of one type.
func (t xdbcType) append(b *array.RecordBuilder) {
	text := func(i int, v string) {
		if v == "" {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(*array.StringBuilder).Append(v)
	}
	number := func(i int, v int32, null bool) {
		if null {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(*array.Int32Builder).Append(v)
	}
	flag := func(i int, v, null bool) {
		if null {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(*array.BooleanBuilder).Append(v)
	}
	const nullable, searchableFully = 1, 3
	text(0, t.name)
	number(1, t.code, false)
	number(2, t.size, t.size == 0)
	text(3, t.quote)
	text(4, t.quote)
	params := b.Field(5).(*array.ListBuilder)
	params.Append(true)
	for _, p := range t.params {
		params.ValueBuilder().(*array.StringBuilder).Append(p)
	}
	number(6, nullable, false)
	flag(7, t.caseAware, false)
	number(8, searchableFully, false)
	flag(9, t.unsigned == 1, t.unsigned < 0)
	flag(10, false, false)
	flag(11, false, t.unsigned < 0)
	text(12, t.name)
	number(13, 0, t.maxScale == 0 && t.radix != 10)
	number(14, t.maxScale, t.maxScale == 0 && t.radix != 10)
	number(15, t.sqlType, false)
	number(16, t.dateTime, t.dateTime == 0)
	number(17, t.radix, t.radix == 0)
	number(18, 0, true)
}
