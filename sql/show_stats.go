package sql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/sql/grammar"
)

func statsRelation() *relation {
	return newRelation(field("column_name", textColumn), field("data_size", floatColumn), field("distinct_values_count", floatColumn),
		field("nulls_fraction", floatColumn), field("row_count", floatColumn), field("low_value", textColumn), field("high_value", textColumn))
}

// showStats compiles SHOW STATS: a row for each column and, last, one for the table. They
// are put together from what the parts know, so they are those of the statement's version.
func (c *compiler) showStats(q grammar.QualifiedName) (*action, error) {
	t, err := c.known(q)
	if err != nil {
		return nil, err
	}
	return c.listing(statsRelation(), func(r *relation) error {
		stats := t.Statistics()
		for _, col := range stats.Columns {
			var distinct any
			if col.Distinct >= 0 {
				distinct = float64(col.Distinct)
			}
			r.add(col.Column, float64(col.DataSize), distinct, col.NullsFraction(stats.Rows), nil, textOrNull(col.Low), textOrNull(col.High))
		}
		r.add(nil, nil, nil, nil, float64(stats.Rows), nil, nil)
		return nil
	}), nil
}

func textOrNull(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}

// columnStats are the aggregates of one column of a query, in the order of their places.
const columnStats = 5

// showStatsOf compiles SHOW STATS FOR (query): the same of the rows that the query gives.
// No part knows them, so the query runs.
func (c *compiler) showStatsOf(query *grammar.Text) (*action, error) {
	x, in := c.run, c.in
	snapshot := x.hold()
	inner, err := x.engine.plan(x.ctx, query.Value, in, snapshot)
	if err != nil {
		return nil, c.shift(err, query.Start)
	}
	if inner.schema == nil {
		return nil, badArgument("the types of the query's parameters are open: cast them, as in CAST(? AS INTEGER)")
	}
	p, err := x.engine.plan(x.ctx, statsQuery(query.Value, inner.schema), in, snapshot)
	if err != nil {
		return nil, err
	}
	r := statsRelation()
	return &action{kind: Query, schema: r.schema, params: p.params, run: func(params []any) (*output, error) {
		out, err := x.runPlan(p, in, snapshot, params)
		if err != nil {
			return nil, err
		}
		batch, err := out.rows.next(x.ctx)
		if err != nil {
			return nil, err
		}
		defer batch.Release()
		addQueryStats(r, batch, inner.schema)
		answer := r.output(x)
		answer.stats = out.stats
		return answer, nil
	}}, nil
}

// statsQuery asks for the number of a query's rows and, for each column, its values that are
// not NULL, its different ones, the least, the greatest, and the bytes of texts.
func statsQuery(query string, schema *arrow.Schema) string {
	items, names := []string{"count(*)"}, make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		c := fmt.Sprintf("c%d", i)
		names[i] = c
		size := "NULL"
		switch f.Type.ID() {
		case arrow.STRING:
			size = "sum(strlen(" + c + "))"
		case arrow.BINARY:
			size = "sum(octet_length(" + c + "))"
		}
		items = append(items, "count("+c+")", "approx_count_distinct("+c+")", "min("+c+")::VARCHAR", "max("+c+")::VARCHAR", size+"::DOUBLE")
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + query + "\n) AS q(" + strings.Join(names, ", ") + ")"
}

// addQueryStats reads the one row that statsQuery gives.
func addQueryStats(r *relation, batch arrow.RecordBatch, schema *arrow.Schema) {
	count := func(i int) float64 { return float64(batch.Column(i).(*array.Int64).Value(0)) }
	text := func(i int) any {
		if column := batch.Column(i).(*array.String); column.IsValid(0) {
			return strings.Clone(column.Value(0))
		}
		return nil
	}
	rows := count(0)
	for i, f := range schema.Fields() {
		at := 1 + i*columnStats
		nulls := 0.0
		if rows > 0 {
			nulls = 1 - count(at)/rows
		}
		var size any
		if width, ok := f.Type.(arrow.FixedWidthDataType); ok {
			size = rows * float64(width.BitWidth()) / 8
		} else if column := batch.Column(at + 4).(*array.Float64); column.IsValid(0) {
			size = column.Value(0)
		}
		// The estimate may exceed what is possible.
		r.add(f.Name, size, min(count(at+1), count(at)), nulls, nil, text(at+2), text(at+3))
	}
	r.add(nil, nil, nil, nil, rows, nil, nil)
}
