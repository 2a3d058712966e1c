package sql

import (
	"github.com/memconn/memconn/sql/grammar"
)

// showStats compiles SHOW STATS: a row for each column and, last, one for the table. They
// are put together from what the parts know, so they are those of the statement's version.
func (c *compiler) showStats(q grammar.QualifiedName) (*action, error) {
	t, err := c.known(q)
	if err != nil {
		return nil, err
	}
	r := newRelation(field("column_name", textColumn), field("data_size", floatColumn), field("distinct_values_count", floatColumn),
		field("nulls_fraction", floatColumn), field("row_count", floatColumn), field("low_value", textColumn), field("high_value", textColumn))
	return c.listing(r, func(r *relation) error {
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
