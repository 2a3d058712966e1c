package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func TestJSONIsOneArray(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	for name, test := range map[string]struct {
		batches int
		want    []map[string]any
	}{
		"none": {0, []map[string]any{}},
		"two":  {2, []map[string]any{{"n": 1.0, "s": "a\nb"}, {"n": nil, "s": "]"}, {"n": 1.0, "s": "a\nb"}, {"n": nil, "s": "]"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p, err := newFilePrinter("json", &out)
			require.NoError(t, err)
			require.NoError(t, p.start(schema))
			for range test.batches {
				b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
				b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 0}, []bool{true, false})
				b.Field(1).(*array.StringBuilder).AppendValues([]string{"a\nb", "]"}, nil)
				batch := b.NewRecordBatch()
				require.NoError(t, p.print(batch))
				batch.Release()
			}
			require.NoError(t, p.finish())
			var got []map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &got), out.String())
			require.Equal(t, test.want, got)
		})
	}
}
