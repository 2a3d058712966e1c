package flightsrv

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

// The JDBC driver sends milliseconds whatever it is told, so milliseconds is what it must be told.
func TestAnnouncedTimesAreMilliseconds(t *testing.T) {
	fields := func(types ...arrow.DataType) *arrow.Schema {
		var out []arrow.Field
		for _, typ := range types {
			out = append(out, arrow.Field{Name: "p", Type: typ, Nullable: true})
		}
		return arrow.NewSchema(out, nil)
	}
	got := announced(fields(arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Time64us, arrow.PrimitiveTypes.Int64,
		&arrow.TimestampType{Unit: arrow.Nanosecond}, arrow.FixedWidthTypes.Date32))
	want := fields(&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, arrow.FixedWidthTypes.Time32ms, arrow.PrimitiveTypes.Int64,
		&arrow.TimestampType{Unit: arrow.Millisecond}, arrow.FixedWidthTypes.Date32)
	require.True(t, want.Equal(got), got)
	require.Nil(t, announced(nil))
}
