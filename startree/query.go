package startree

import (
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// Query is a grouped aggregate over one table in normal form.
type Query struct {
	// GroupBy are the grouping expressions; a repeated one gives a repeated column.
	// None: one row for all rows.
	GroupBy []Dimension
	// Filter is exact: a row belongs to the query if and only if it satisfies it. Its
	// names are those of the base table's columns.
	Filter     predicate.Constraint
	Aggregates []Aggregate
	// Partial asks for columns that can be aggregated again (see Run).
	Partial bool
}

// Match tells whether cells of the cube can answer the query: "" if its dimensions,
// states and filter suffice, else the reason why not, for people.
func (m *Manifest) Match(base *table.Definition, q *Query) (reason string) {
	return "not yet"
}
