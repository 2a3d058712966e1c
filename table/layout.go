package table

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// Names of the footer sections and blobs this package writes into part files.
const (
	sectionLayout = "layout"
	sectionSparse = "sparse"
)

func sectionZone(id ColumnID) string { return "zone/" + strconv.FormatUint(uint64(id), 10) }

func sectionDistinct(id ColumnID) string { return "ndv/" + strconv.FormatUint(uint64(id), 10) }

// blobBloom names the bloom filter of one page group.
func blobBloom(id ColumnID, group int) string {
	return "bloom/" + strconv.FormatUint(uint64(id), 10) + "/" + strconv.Itoa(group)
}

// blobPartBloom names the bloom filter of a whole column.
func blobPartBloom(id ColumnID) string {
	return "bloom/" + strconv.FormatUint(uint64(id), 10) + "/part"
}

// layoutVersion is raised when the meaning of the sections changes.
const layoutVersion = 1

// layout is the JSON of the layout section. JSON because it is small, read once
// for each part, and worth reading by people who inspect a file.
type layout struct {
	Version   int          `json:"version"`
	Table     uint64       `json:"table"`
	Processed bool         `json:"processed"`
	SortedBy  []layoutSort `json:"sortedBy,omitempty"`
	// Blooms lists the columns with bloom filters.
	Blooms []ColumnID `json:"blooms,omitempty"`
	// Partition names the partition of all rows; see Part.Partition.
	Partition string `json:"partition,omitempty"`
	// Codec and BloomFPP are the properties that the part was written with. Empty and 0,
	// in parts of older programs: not known.
	Codec    string  `json:"codec,omitempty"`
	BloomFPP float64 `json:"bloomFpp,omitempty"`
}

// written are the properties of a table that a part was written with and that do not
// show in its pages: the codec's name and the rate of false positives of its bloom
// filters. Zero values are unknown.
type written struct {
	codec string
	fpp   float64
}

// fits tells whether the part need not be written again for the definition's sake.
func (w written) fits(d *Definition, blooms bool) bool {
	if w.codec != "" && w.codec != d.Properties.Codec.String() {
		return false
	}
	return !blooms || w.fpp == 0 || w.fpp == d.bloomFPP()
}

type layoutSort struct {
	Column     ColumnID `json:"column"`
	Desc       bool     `json:"desc,omitempty"`
	NullsFirst bool     `json:"nullsFirst,omitempty"`
}

func (l *layout) encode() ([]byte, error) { return json.Marshal(l) }

func decodeLayout(src []byte) (*layout, error) {
	var l layout
	if err := json.Unmarshal(src, &l); err != nil {
		return nil, fmt.Errorf("section %q: %w", sectionLayout, err)
	}
	if l.Version != layoutVersion {
		return nil, fmt.Errorf("section %q: version is %d, this program reads %d", sectionLayout, l.Version, layoutVersion)
	}
	return &l, nil
}

func (l *layout) sortKeys() []SortKey {
	var keys []SortKey
	for _, s := range l.SortedBy {
		keys = append(keys, SortKey(s))
	}
	return keys
}

func layoutSorts(keys []SortKey) []layoutSort {
	var out []layoutSort
	for _, k := range keys {
		out = append(out, layoutSort(k))
	}
	return out
}

// newPartColumn derives what can be known of a stored column from its field.
func newPartColumn(id ColumnID, f arrow.Field) partColumn {
	c := partColumn{id: id, field: f, storage: storageType(f.Type)}
	c.kind, c.ordered = predicate.KindOf(c.storage)
	return c
}

// fieldID reads the ColumnID of a field of a part file's schema.
func fieldID(f arrow.Field) (ColumnID, error) {
	text, ok := f.Metadata.GetValue(fieldIDKey)
	if !ok {
		return 0, fmt.Errorf("column %q has no %s", f.Name, fieldIDKey)
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("column %q: %s is %q", f.Name, fieldIDKey, text)
	}
	return ColumnID(id), nil
}

// setSort fills the sort fields of a part whose columns are in place.
func (p *Part) setSort(keys []SortKey) error {
	for _, k := range keys {
		i := p.columnIndex(k.Column)
		if i < 0 {
			return fmt.Errorf("sort column %d is not stored in part %d", k.Column, p.id)
		}
		if !p.cols[i].ordered {
			return fmt.Errorf("sort column %q of type %s has no order: %w", p.cols[i].field.Name, p.cols[i].field.Type, ErrTypeNotSupported)
		}
		p.sortCols = append(p.sortCols, i)
		p.sortFields = append(p.sortFields, sortidx.Field{Type: p.cols[i].storage, Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	p.sortedBy = keys
	if len(keys) > 0 {
		p.words = newOrderWords(p.cols[p.sortCols[0]].zones, p.sortFields[0])
	}
	return nil
}
