package sql

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// explanation is what EXPLAIN tells, as text and as JSON.
type explanation struct {
	// Statement names what is written; "" for a query.
	Statement string `json:"statement,omitempty"`
	// Way is who answers: a fast path or the engine.
	Way string `json:"way"`
	// Cubes are, line by line, the cubes that answer, or why they do not.
	Cubes []string `json:"cubes,omitempty"`
	// Order is the order that the table gives without a sort.
	Order string            `json:"order,omitempty"`
	Scans []scanExplanation `json:"scans"`
	// EnginePlan is DuckDB's own plan.
	EnginePlan string `json:"enginePlan,omitempty"`
	// With ANALYZE.
	Total *costExplanation `json:"total,omitempty"`
}

// scanExplanation is one table reference.
type scanExplanation struct {
	Table         string           `json:"table"`
	Alias         string           `json:"alias,omitempty"`
	Constraint    string           `json:"constraint"`
	Exact         bool             `json:"exact"`
	Columns       []string         `json:"columns"`
	EstimatedRows int64            `json:"estimatedRows"`
	Rows          int64            `json:"rows"`
	Narrowed      []string         `json:"narrowed,omitempty"`
	Cost          *costExplanation `json:"cost,omitempty"`
}

// costExplanation is what was read, and of the whole statement what came out.
type costExplanation struct {
	PartsRead       int64    `json:"partsRead"`
	PartsTotal      int64    `json:"partsTotal"`
	PageGroupsRead  int64    `json:"pageGroupsRead"`
	PageGroupsTotal int64    `json:"pageGroupsTotal"`
	RowsRead        int64    `json:"rowsRead"`
	RowsTotal       int64    `json:"rowsTotal"`
	BytesLoaded     int64    `json:"bytesLoaded"`
	Indexes         []string `json:"indexes"`
	ResultRows      *int64   `json:"resultRows,omitempty"`
	RowsWritten     *int64   `json:"rowsWritten,omitempty"`
	ElapsedMs       *float64 `json:"elapsedMs,omitempty"`
}

func (c *costExplanation) of(s Stats) {
	c.PartsRead, c.PartsTotal, c.PageGroupsRead, c.PageGroupsTotal = s.PartsRead, s.PartsTotal, s.PageGroupsRead, s.PageGroupsTotal
	c.RowsRead, c.RowsTotal, c.BytesLoaded = s.RowsRead, s.RowsTotal, s.BytesLoaded
	c.Indexes = append([]string{}, s.Indexes...)
	slices.Sort(c.Indexes)
}

// analysis tells what a finished run has cost in all.
func (e *explanation) analysis(x *execution, out *output) {
	var stats Stats
	if out.stats != nil {
		out.stats(&stats)
	}
	e.Total = &costExplanation{}
	e.Total.of(stats)
	x.mu.Lock()
	rows := x.mu.rows
	x.mu.rows = 0
	x.mu.Unlock()
	if out.counts {
		rows = out.count
		e.Total.RowsWritten = &rows
	} else {
		e.Total.ResultRows = &rows
	}
	elapsed := float64(x.elapsed().Microseconds()) / 1000
	e.Total.ElapsedMs = &elapsed
}

func (e *explanation) json() string {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		panic("BUG: an explanation that is no JSON: " + err.Error())
	}
	return string(text)
}

func (e *explanation) text() []string {
	var lines []string
	if e.Statement != "" {
		lines = append(lines, e.Statement)
	}
	lines = append(lines, e.Way)
	if e.Order != "" {
		lines = append(lines, "  order: "+e.Order+" (the table's own, no sort)")
	}
	lines = append(lines, e.Cubes...)
	for _, s := range e.Scans {
		lines = append(lines, s.text()...)
	}
	if e.EnginePlan != "" {
		lines = append(lines, "DuckDB's plan")
		lines = append(lines, indent("  ", strings.Split(e.EnginePlan, "\n"))...)
	}
	if e.Total != nil {
		lines = append(append(lines, "Total"), indent("  ", e.Total.text())...)
	}
	return lines
}

func (s *scanExplanation) text() []string {
	name, exact := s.Table, "superset"
	if s.Alias != "" {
		name += " as " + s.Alias
	}
	if s.Exact {
		exact = "exact"
	}
	lines := []string{
		"  Scan " + name,
		fmt.Sprintf("    constraint: %s (%s)", s.Constraint, exact),
		"    columns: " + strings.Join(s.Columns, ", "),
	}
	if s.Rows >= 0 { // the catalog's views are made when they are read
		lines = append(lines, fmt.Sprintf("    estimated rows: %d of %d", s.EstimatedRows, s.Rows))
	}
	for _, by := range s.Narrowed {
		lines = append(lines, "    narrowed: "+by)
	}
	if s.Cost != nil {
		lines = append(lines, indent("    ", s.Cost.text())...)
	}
	return lines
}

func (c *costExplanation) text() []string {
	used := strings.Join(c.Indexes, ", ")
	if used == "" {
		used = "none"
	}
	lines := []string{
		fmt.Sprintf("parts: %d of %d read", c.PartsRead, c.PartsTotal),
		fmt.Sprintf("page groups: %d of %d read", c.PageGroupsRead, c.PageGroupsTotal),
		fmt.Sprintf("rows: %d of %d read", c.RowsRead, c.RowsTotal),
		fmt.Sprintf("bytes loaded: %d", c.BytesLoaded),
		"indexes: " + used,
	}
	if c.ResultRows != nil {
		lines = append(lines, fmt.Sprintf("result rows: %d", *c.ResultRows))
	}
	if c.RowsWritten != nil {
		lines = append(lines, fmt.Sprintf("rows written: %d", *c.RowsWritten))
	}
	if c.ElapsedMs != nil {
		lines = append(lines, fmt.Sprintf("elapsed: %.3f ms", *c.ElapsedMs))
	}
	return lines
}

func indent(by string, lines []string) []string {
	for i := range lines {
		lines[i] = by + lines[i]
	}
	return lines
}

// orderText names the order of a fast plan; "" when it has none.
func (f *fastPlan) orderText() string {
	terms := make([]string, len(f.order))
	for i, o := range f.order {
		terms[i] = o.String()
	}
	return strings.Join(terms, ", ")
}

// maxRangesShown bounds the ranges of one column, as IN lists may be very long.
const maxRangesShown = 16

// constraintText writes a constraint with values as their columns' types show them.
func constraintText(def *table.Definition, c predicate.Constraint) string {
	var terms []string
	for _, name := range c.Columns() {
		domain, _ := c.Domain(name)
		column, ok := def.Column(name)
		if !ok {
			return c.String()
		}
		terms = append(terms, name+" in "+domainText(column.Type, domain))
	}
	if len(terms) == 0 {
		return c.String()
	}
	return strings.Join(terms, " and ")
}

func domainText(t arrow.DataType, d predicate.Domain) string {
	var pieces []string
	for i, r := range d.Ranges() {
		if i == maxRangesShown {
			pieces = append(pieces, fmt.Sprintf("... %d more", len(d.Ranges())-i))
			break
		}
		pieces = append(pieces, rangeText(t, r))
	}
	if d.NullAllowed() {
		pieces = append(pieces, "NULL")
	}
	return "{" + strings.Join(pieces, ",") + "}"
}

func rangeText(t arrow.DataType, r predicate.Range) string {
	if r.IsPoint() {
		return valueText(t, r.Low.Value)
	}
	low, high := "(-∞", "∞)"
	if r.Low.Set {
		low = "(" + valueText(t, r.Low.Value)
		if r.Low.Inclusive {
			low = "[" + valueText(t, r.Low.Value)
		}
	}
	if r.High.Set {
		high = valueText(t, r.High.Value) + ")"
		if r.High.Inclusive {
			high = valueText(t, r.High.Value) + "]"
		}
	}
	return low + "," + high
}

// valueText writes dates and times as SQL does, texts in quotes.
func valueText(t arrow.DataType, v predicate.Value) string {
	switch t := t.(type) {
	case *arrow.TimestampType:
		moment := arrow.Timestamp(v.AsInt()).ToTime(t.Unit).UTC()
		text := moment.Format("2006-01-02 15:04:05.999999999")
		if t.TimeZone != "" {
			text += "+00"
		}
		return text
	case *arrow.Time64Type:
		return time.Time{}.Add(time.Duration(v.AsInt()) * t.Unit.Multiplier()).Format("15:04:05.999999999")
	case *arrow.StringType, *arrow.BinaryType:
		return v.String()
	}
	return predicate.Format(t, v)
}
