package connector

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// recordVersion is written into every JSON record. A record of a greater version
// is refused, so that an older program never half-understands a newer directory.
const recordVersion = 1

// Prefixes of the keys of the metadata store; doc.go describes the layout.
const (
	prefixSchema = "schema/"
	prefixTable  = "table/"
	prefixPart   = "part/"
	prefixRows   = "rows/"
	prefixWrite  = "write/"
	keyCounter   = "counter/ids"
)

// Kinds of parts: where the rows are.
const (
	partInFile = "file" // parts/<id>.part
	partInRows = "rows" // rows/<id> in the metadata store
)

type schemaRecord struct {
	V    int    `json:"v"`
	Name string `json:"name"`
}

type counterRecord struct {
	V       int    `json:"v"`
	NextID  uint64 `json:"nextId"`  // greater than every id of a table or part in use
	Version uint64 `json:"version"` // number of the last published version
}

type partRecord struct {
	V         int    `json:"v"`
	Kind      string `json:"kind"`
	Rows      int64  `json:"rows"`
	Processed bool   `json:"processed,omitempty"`
	// Seq is the first and last number of the commits that the rows come from. Records
	// without it are older than all numbers.
	Seq [2]uint64 `json:"seq"`
}

type writeRecord struct {
	V         int       `json:"v"`
	Key       string    `json:"key,omitempty"`   // idempotency key
	Request   string    `json:"request"`         // what the key was used for
	Parts     []uint64  `json:"parts,omitempty"` // published fragments' parts, ascending
	Rows      int64     `json:"rows"`
	Version   uint64    `json:"version"`
	Committed time.Time `json:"committed"`
}

type tableRecord struct {
	V            int              `json:"v"`
	Schema       string           `json:"schema"`
	Name         string           `json:"name"`
	Comment      string           `json:"comment,omitempty"`
	NextColumnID uint32           `json:"nextColumnId"`
	Columns      []columnRecord   `json:"columns"`
	Properties   propertiesRecord `json:"properties"`
	Barriers     []uint64         `json:"barriers,omitempty"`
	DataEpoch    uint64           `json:"dataEpoch,omitempty"`
	CubeOf       uint64           `json:"cubeOf,omitempty"`
	Cube         json.RawMessage  `json:"cube,omitempty"`
}

type columnRecord struct {
	ID       uint32     `json:"id"`
	Name     string     `json:"name"`
	Type     typeRecord `json:"type"`
	Nullable bool       `json:"nullable"`
	Default  string     `json:"default,omitempty"`
	Comment  string     `json:"comment,omitempty"`
}

type propertiesRecord struct {
	SortedBy        []sortRecord `json:"sortedBy,omitempty"`
	IndexColumns    []uint32     `json:"indexColumns,omitempty"`
	IndexNames      []string     `json:"indexNames,omitempty"`
	PartitionedBy   []uint32     `json:"partitionedBy,omitempty"`
	PrimaryKey      []uint32     `json:"primaryKey,omitempty"`
	Codec           string       `json:"codec"`
	AsyncProcessing bool         `json:"asyncProcessing"`
	BloomFPP        float64      `json:"bloomFpp,omitempty"`
}

type sortRecord struct {
	Column     uint32 `json:"column"`
	Desc       bool   `json:"desc,omitempty"`
	NullsFirst bool   `json:"nullsFirst,omitempty"`
}

// idKey writes ids in hexadecimal of fixed width, so that keys sort like ids.
func idKey(prefix string, ids ...uint64) []byte {
	key := []byte(prefix)
	for i, id := range ids {
		if i > 0 {
			key = append(key, '/')
		}
		key = hex.AppendEncode(key, binary.BigEndian.AppendUint64(nil, id))
	}
	return key
}

// parseIDKey is the inverse of idKey.
func parseIDKey(prefix string, key []byte, ids ...*uint64) error {
	rest, ok := strings.CutPrefix(string(key), prefix)
	texts := strings.Split(rest, "/")
	if !ok || len(texts) != len(ids) {
		return recordError(key, "the key has the wrong form")
	}
	for i, text := range texts {
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != 8 {
			return recordError(key, "the key has the wrong form")
		}
		*ids[i] = binary.BigEndian.Uint64(raw)
	}
	return nil
}

func schemaKey(name string) []byte          { return []byte(prefixSchema + catalog.Fold(name)) }
func tableKey(id uint64) []byte             { return idKey(prefixTable, id) }
func partKey(tableID, partID uint64) []byte { return idKey(prefixPart, tableID, partID) }
func rowsKey(partID uint64) []byte          { return idKey(prefixRows, partID) }
func writeKey(id string) []byte             { return []byte(prefixWrite + id) }

func recordError(key []byte, format string, args ...any) error {
	return Errorf(CodeCorruptData, "metadata record %q: %s", key, fmt.Sprintf(format, args...))
}

// encodeRecord gives the JSON of a record. Records are plain structs, so encoding
// cannot fail.
func encodeRecord(record any) []byte {
	text, err := json.Marshal(record)
	if err != nil {
		panic("BUG: a metadata record cannot be encoded: " + err.Error())
	}
	return text
}

// decodeRecord reads a JSON record and refuses versions of the future.
func decodeRecord(key, value []byte, record any) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(value, &head); err != nil {
		return recordError(key, "%v", err)
	}
	if head.V > recordVersion {
		return wrap(spill.ErrNewerFormat, "metadata record %q has version %d, this program reads up to %d: use a newer memconn",
			key, head.V, recordVersion)
	}
	if err := json.Unmarshal(value, record); err != nil {
		return recordError(key, "%v", err)
	}
	return nil
}

func tableToRecord(d *table.Definition) tableRecord {
	r := tableRecord{V: recordVersion, Schema: d.Schema, Name: d.Name, Comment: d.Comment, NextColumnID: uint32(d.NextColumnID)}
	r.Barriers, r.DataEpoch, r.CubeOf, r.Cube = d.Barriers, d.DataEpoch, d.CubeOf, d.Cube
	for _, c := range d.Columns {
		t, err := typeToRecord(c.Type)
		if err != nil {
			panic("BUG: a stored column has a type without a record: " + err.Error())
		}
		r.Columns = append(r.Columns, columnRecord{ID: uint32(c.ID), Name: c.Name, Type: t, Nullable: c.Nullable, Default: c.Default, Comment: c.Comment})
	}
	p := d.Properties
	r.Properties = propertiesRecord{
		IndexColumns: columnNumbers(p.IndexColumns), IndexNames: p.IndexNames, PartitionedBy: columnNumbers(p.PartitionedBy), PrimaryKey: columnNumbers(p.PrimaryKey),
		Codec: p.Codec.String(), AsyncProcessing: p.AsyncProcessing, BloomFPP: p.BloomFPP,
	}
	for _, k := range p.SortedBy {
		r.Properties.SortedBy = append(r.Properties.SortedBy, sortRecord{Column: uint32(k.Column), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return r
}

func tableFromRecord(id uint64, key []byte, r tableRecord) (*table.Definition, error) {
	d := &table.Definition{ID: id, Schema: r.Schema, Name: r.Name, Comment: r.Comment, NextColumnID: table.ColumnID(r.NextColumnID)}
	for _, c := range r.Columns {
		t, err := typeFromRecord(c.Type)
		if err != nil {
			return nil, recordError(key, "column %q: %v", c.Name, err)
		}
		d.Columns = append(d.Columns, table.Column{ID: table.ColumnID(c.ID), Name: c.Name, Type: t, Nullable: c.Nullable, Default: c.Default, Comment: c.Comment})
	}
	if !slices.IsSorted(r.Barriers) {
		return nil, recordError(key, "barriers %d are not in ascending order", r.Barriers)
	}
	d.Barriers, d.DataEpoch, d.CubeOf, d.Cube = r.Barriers, r.DataEpoch, r.CubeOf, r.Cube
	codec, err := spill.ParseCodec(r.Properties.Codec)
	if err != nil {
		return nil, recordError(key, "%v", err)
	}
	d.Properties = table.Properties{
		IndexColumns: columnIDs(r.Properties.IndexColumns), IndexNames: r.Properties.IndexNames, PartitionedBy: columnIDs(r.Properties.PartitionedBy),
		PrimaryKey: columnIDs(r.Properties.PrimaryKey), Codec: codec,
		AsyncProcessing: r.Properties.AsyncProcessing, BloomFPP: r.Properties.BloomFPP,
	}
	for _, k := range r.Properties.SortedBy {
		d.Properties.SortedBy = append(d.Properties.SortedBy, table.SortKey{Column: table.ColumnID(k.Column), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	if n := len(d.Properties.IndexNames); n > 0 && n != len(d.Properties.IndexColumns) {
		return nil, recordError(key, "%d names of %d indexes", n, len(d.Properties.IndexColumns))
	}
	for _, ids := range [][]table.ColumnID{sortColumns(d), d.Properties.IndexColumns, d.Properties.PartitionedBy, d.Properties.PrimaryKey} {
		for _, c := range ids {
			if _, ok := d.ColumnByID(c); !ok {
				return nil, recordError(key, "a property names column id %d, which the table does not have", c)
			}
		}
	}
	return d, nil
}

func sortColumns(d *table.Definition) []table.ColumnID {
	var ids []table.ColumnID
	for _, k := range d.Properties.SortedBy {
		ids = append(ids, k.Column)
	}
	return ids
}

func columnNumbers(ids []table.ColumnID) []uint32 {
	var numbers []uint32
	for _, id := range ids {
		numbers = append(numbers, uint32(id))
	}
	return numbers
}

func columnIDs(numbers []uint32) []table.ColumnID {
	var ids []table.ColumnID
	for _, n := range numbers {
		ids = append(ids, table.ColumnID(n))
	}
	return ids
}
