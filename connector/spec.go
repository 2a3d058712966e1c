package connector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// maxColumns bounds the width of a table: every column costs a page a group.
const maxColumns = 16384

// ColumnSpec describes a column of a table to create.
type ColumnSpec struct {
	Name string
	// Type is any Arrow type that table.CanonicalType accepts.
	Type    arrow.DataType
	NotNull bool
	// Default is the SQL text of a constant: NULL, TRUE, a number, or a quoted text
	// which may be preceded by a type name. "" means none.
	Default string
	Comment string
}

// SortSpec is one column of sorted_by.
type SortSpec struct {
	Column     string
	Desc       bool
	NullsFirst bool
	// NullsSet says that NULLS FIRST or NULLS LAST was written. The default is LAST.
	NullsSet bool
}

// String gives the text that ParseSortSpec reads.
func (s SortSpec) String() string {
	text := s.Column
	if s.Desc {
		text += " DESC"
	}
	switch {
	case s.NullsFirst:
		text += " NULLS FIRST"
	case s.NullsSet:
		text += " NULLS LAST"
	}
	return text
}

// TableSpec describes a table to create.
type TableSpec struct {
	Name          TableName
	Columns       []ColumnSpec
	SortedBy      []SortSpec
	IndexColumns  []string
	PartitionedBy []string
	PrimaryKey    []string
	// SpillCompression is "true" or "lz4", "false" or "none", "zstd"; "" is the
	// connector's default.
	SpillCompression string
	// AsyncProcessing false makes a commit wait until its rows are processed; nil is true.
	AsyncProcessing *bool
	// BloomFPP is the false positive rate of bloom filters, 0 for the default.
	BloomFPP float64
	Comment  string
}

// ParseSortSpec reads "column [ASC|DESC] [NULLS FIRST|NULLS LAST]". The column may
// be quoted with double quotes, which are doubled to stand for themselves.
func ParseSortSpec(text string) (SortSpec, error) {
	bad := func(why string) (SortSpec, error) {
		return SortSpec{}, Errorf(CodeInvalidTableProperty,
			"sorted_by entry %q: %s: want column [ASC|DESC] [NULLS FIRST|LAST]", text, why)
	}
	column, rest, why := cutColumn(strings.TrimSpace(text))
	if why != "" {
		return bad(why)
	}
	spec := SortSpec{Column: column}
	words := strings.Fields(strings.ToUpper(rest))
	if len(words) > 0 && (words[0] == "ASC" || words[0] == "DESC") {
		spec.Desc = words[0] == "DESC"
		words = words[1:]
	}
	if len(words) >= 2 && words[0] == "NULLS" && (words[1] == "FIRST" || words[1] == "LAST") {
		spec.NullsSet, spec.NullsFirst = true, words[1] == "FIRST"
		words = words[2:]
	}
	if len(words) > 0 {
		return bad(fmt.Sprintf("%q is not understood", strings.Join(words, " ")))
	}
	return spec, nil
}

// cutColumn cuts a plain or quoted name off the front of text.
func cutColumn(text string) (column, rest, why string) {
	if !strings.HasPrefix(text, `"`) {
		column, rest, _ = strings.Cut(text, " ")
		if column == "" {
			return "", "", "the column is missing"
		}
		return column, rest, ""
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), text[i+1:], ""
	}
	return "", "", "the quoted column name has no end"
}

// definition checks a spec and gives the definition of the table; id is given out
// by the caller. All faults of one kind are reported at once.
func (c *Connector) definition(spec TableSpec, id uint64) (*table.Definition, error) {
	spec.Name = spec.Name.normal()
	d := &table.Definition{ID: id, Schema: spec.Name.Schema, Name: spec.Name.Table, Comment: spec.Comment}
	if why := checkName(d.Name); why != "" {
		return nil, Errorf(CodeInvalidArgument, "create table %q: %s", d.Name, why)
	}
	if err := defineColumns(d, spec.Columns); err != nil {
		return nil, err
	}
	if err := c.defineProperties(d, spec); err != nil {
		return nil, err
	}
	return d, nil
}

func defineColumns(d *table.Definition, specs []ColumnSpec) error {
	code, faults := Code(""), []error(nil)
	fault := func(c Code, format string, args ...any) {
		if code == "" {
			code = c
		}
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if len(specs) == 0 {
		fault(CodeInvalidArgument, "a table needs at least one column")
	}
	if len(specs) > maxColumns {
		return Errorf(CodeInvalidArgument, "create table %s: %d columns, at most %d are possible", nameOf(d), len(specs), maxColumns)
	}
	seen := map[string]bool{}
	for i, s := range specs {
		if why := checkName(s.Name); why != "" {
			fault(CodeInvalidArgument, "column %d %q: %s", i+1, s.Name, why)
		}
		// Definition.Column compares by Unicode folding, where for example the long s is
		// an s; names that only differ so would hide one another.
		if key := catalog.Fold(strings.ToUpper(s.Name)); seen[key] {
			fault(CodeInvalidArgument, "column %s is there twice", s.Name)
		} else {
			seen[key] = true
		}
		t, err := table.CanonicalType(s.Type)
		if err != nil {
			fault(CodeTypeNotSupported, "column %s: %w", s.Name, err)
			continue
		}
		column := table.Column{ID: table.ColumnID(i + 1), Name: s.Name, Type: t, Nullable: !s.NotNull, Default: s.Default, Comment: s.Comment}
		if _, err := defaultArray(column, 1); err != nil {
			fault(CodeInvalidArgument, "column %s: %w", s.Name, err)
		}
		d.Columns = append(d.Columns, column)
	}
	d.NextColumnID = table.ColumnID(len(specs) + 1)
	if len(faults) > 0 {
		return Errorf(code, "create table %s: %w", nameOf(d), errors.Join(faults...))
	}
	return nil
}

// propertyChecker resolves the columns that table properties name and collects
// what is wrong with them. The wording of messages is openLooKeng's where it has one.
type propertyChecker struct {
	def    *table.Definition
	faults []string
}

func (p *propertyChecker) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// column resolves one name; shown is how the message calls the property.
func (p *propertyChecker) column(shown, name string) (table.Column, bool) {
	c, ok := p.def.Column(name)
	if !ok {
		names := make([]string, len(p.def.Columns))
		for i, c := range p.def.Columns {
			names[i] = c.Name
		}
		p.fault("column %s in %s does not exist%s", name, shown, didYouMean(nearest(name, names)))
	}
	return c, ok
}

// columns resolves a list of names; title is how the message about a repetition
// calls the property, which in openLooKeng differs from shown.
func (p *propertyChecker) columns(shown, title string, names []string) []table.ColumnID {
	var ids []table.ColumnID
	seen, twice := map[string]bool{}, false
	for _, name := range names {
		if seen[catalog.Fold(name)] {
			twice = true
			continue
		}
		seen[catalog.Fold(name)] = true
		if c, ok := p.column(shown, name); ok {
			ids = append(ids, c.ID)
		}
	}
	if twice {
		p.fault("duplicate column(s) in %s property", title)
	}
	return ids
}

func (p *propertyChecker) sortedBy(specs []SortSpec) {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Column
	}
	ids := p.columns("sorted_by", "sorted_by", names)
	for _, id := range ids {
		column, _ := p.def.ColumnByID(id)
		if _, ok := predicate.KindOf(column.Type); !ok {
			p.fault("column %s in sorted_by is not comparable", column.Name)
		}
		for _, s := range specs {
			if strings.EqualFold(s.Column, column.Name) {
				p.def.Properties.SortedBy = append(p.def.Properties.SortedBy, table.SortKey{Column: id, Desc: s.Desc, NullsFirst: s.NullsFirst})
				break
			}
		}
	}
}

func (p *propertyChecker) indexColumns(names []string) {
	p.def.Properties.IndexColumns = p.columns("index_columns", "index_columns", names)
	sorted := map[table.ColumnID]bool{}
	for _, k := range p.def.Properties.SortedBy {
		sorted[k.Column] = true
	}
	for _, id := range p.def.Properties.IndexColumns {
		column, _ := p.def.ColumnByID(id)
		if _, ok := predicate.KindOf(column.Type); !ok {
			p.fault("column %s in index_columns has type %s, which cannot be indexed", column.Name, column.Type)
		}
		if sorted[id] {
			p.fault("duplicate column(s) in sorted_by and index_columns, sorted_by columns are automatically indexed")
		}
	}
}

func (p *propertyChecker) partitionedBy(names []string) {
	p.def.Properties.PartitionedBy = p.columns("partition_column", "partition_by", names)
	for _, id := range p.def.Properties.PartitionedBy {
		column, _ := p.def.ColumnByID(id)
		if _, ok := predicate.KindOf(column.Type); !ok {
			p.fault("column %s in partitioned_by has type %s, which has no equality", column.Name, column.Type)
		}
	}
}

func (p *propertyChecker) bloomFPP(rate float64) {
	if !(rate >= 0 && rate < 1) {
		p.fault("the false positive rate of bloom filters is %v, want more than 0 and less than 1", rate)
	}
	p.def.Properties.BloomFPP = rate
}

func (c *Connector) defineProperties(d *table.Definition, spec TableSpec) error {
	p := &propertyChecker{def: d}
	d.Properties.AsyncProcessing = spec.AsyncProcessing == nil || *spec.AsyncProcessing
	p.sortedBy(spec.SortedBy)
	p.indexColumns(spec.IndexColumns)
	p.partitionedBy(spec.PartitionedBy)
	p.columns("primary_key", "primary_key", spec.PrimaryKey)
	codec, ok := compression(spec.SpillCompression, c.options.Codec)
	if !ok {
		p.fault("spill_compression is %q, want true, false, 'lz4', 'zstd' or 'none'", spec.SpillCompression)
	}
	d.Properties.Codec = codec
	p.bloomFPP(spec.BloomFPP)
	if len(p.faults) > 0 {
		return Errorf(CodeInvalidTableProperty, "%s", strings.Join(p.faults, "; ")).with("table", nameOf(d).String())
	}
	if len(spec.PrimaryKey) > 0 {
		return Errorf(CodeNotSupported, "table property primary_key is not supported yet: create table %s without it", nameOf(d)).
			with("property", "primary_key")
	}
	return nil
}

// compression reads the table property spill_compression.
func compression(text string, fallback spill.Codec) (spill.Codec, bool) {
	switch strings.ToLower(text) {
	case "":
		return fallback, true
	case "true", "lz4":
		return spill.CodecLZ4, true
	case "false", "none":
		return spill.CodecNone, true
	case "zstd":
		return spill.CodecZstd, true
	default:
		return 0, false
	}
}
