package connector

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// FuzzReadRecords: any key and value of the metadata store are refused as corrupt or of a newer format, or give a definition
// that is true to itself: its record reads the same again.
func FuzzReadRecords(f *testing.F) {
	d := &table.Definition{
		ID: 3, Schema: "default", Name: "t", NextColumnID: 3,
		Columns:    []table.Column{{ID: 1, Name: "k", Type: arrow.PrimitiveTypes.Int64}, {ID: 2, Name: "d", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true}},
		Properties: table.Properties{SortedBy: []table.SortKey{{Column: 1, Desc: true}}, IndexColumns: []table.ColumnID{2}, Codec: spill.CodecLZ4},
	}
	f.Add(tableKey(3), encodeRecord(tableToRecord(d)))
	f.Add(partKey(3, 4), encodeRecord(partRecord{V: recordVersion, Kind: partInFile, Rows: 9}))
	f.Add(schemaKey("s"), encodeRecord(schemaRecord{V: recordVersion, Name: "s"}))
	f.Add(writeKey("w"), encodeRecord(writeRecord{V: recordVersion, Request: "append", Parts: []uint64{4}}))
	f.Add(tableKey(1), []byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := records{parts: map[uint64]map[uint64]partRecord{}, writes: map[string]writeRecord{}}
		for _, read := range []func(key, value []byte) error{r.readSchema, r.readTable, r.readPart, r.readWrite} {
			if err := read(key, value); err != nil {
				require.Contains(t, []Code{CodeCorruptData, CodeNotSupported}, CodeOf(err), "%v", err)
			}
		}
		for _, def := range r.tables {
			again, err := tableFromRecord(def.ID, tableKey(def.ID), tableToRecord(def))
			require.NoError(t, err)
			require.Equal(t, tableToRecord(def), tableToRecord(again))
		}
	})
}
