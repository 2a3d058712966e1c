package connector

import (
	"context"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// TableStatistics is what is known of a table in one version. It is never older than the
// version: parts carry their own statistics, which are put together here.
type TableStatistics struct {
	Rows    int64
	Columns []ColumnStatistics
}

// ColumnStatistics is what is known of one column.
type ColumnStatistics struct {
	Column string
	// DataSize is what the column's pages take in memory, in bytes.
	DataSize int64
	// Nulls counts the rows that are NULL.
	Nulls int64
	// Distinct estimates the number of values that are not NULL (1.6 % standard error);
	// negative when it is not known.
	Distinct int64
	// Low and High bound the values as text, nil when there is no value or no bound. They
	// are values of the column unless LowTruncated or HighTruncated, which happens to long
	// texts.
	Low, High                   *string
	LowTruncated, HighTruncated bool
}

// NullsFraction gives the share of NULLs, 0 for a table without rows.
func (c ColumnStatistics) NullsFraction(rows int64) float64 {
	if rows == 0 {
		return 0
	}
	return float64(c.Nulls) / float64(rows)
}

// Statistics gives the table's statistics, from memory but for the sketches of small
// parts. Rows of a part that cannot be opened count in Rows only.
func (t *Table) Statistics() TableStatistics {
	columns := t.state.Def.Columns
	ids, sums := make([]table.ColumnID, len(columns)), make([]table.ColumnStatistics, len(columns))
	for i := range columns {
		ids[i], sums[i].Known = columns[i].ID, true
	}
	for _, p := range t.state.Parts {
		for i, s := range p.Statistics(context.Background(), ids) {
			sums[i] = sums[i].Merge(s)
		}
	}
	out := TableStatistics{Rows: t.state.Rows, Columns: make([]ColumnStatistics, 0, len(columns))}
	for i := range columns {
		out.Columns = append(out.Columns, columnStatistics(&columns[i], sums[i]))
	}
	return out
}

func columnStatistics(c *table.Column, sum table.ColumnStatistics) ColumnStatistics {
	out := ColumnStatistics{Column: c.Name, DataSize: sum.Bytes, Nulls: sum.Zone.Nulls, Distinct: -1}
	if sum.Known {
		// A sketch may err upwards beyond what is possible.
		out.Distinct = min(sum.Distinct.Estimate(), sum.Zone.Values())
	}
	if sum.Zone.Bounded {
		text := predicate.Format(c.Type, sum.Zone.Min)
		out.Low, out.LowTruncated = &text, truncated(sum.Zone.Min, sum.Zone.MinExact)
		if sum.Zone.Max.Kind() != predicate.KindInvalid {
			text := predicate.Format(c.Type, sum.Zone.Max)
			out.High, out.HighTruncated = &text, truncated(sum.Zone.Max, sum.Zone.MaxExact)
		}
	}
	return out
}

// truncated tells whether a bound is not a value. A float zero counts as one whatever its
// sign.
func truncated(v predicate.Value, exact bool) bool { return !exact && v.Kind() == predicate.KindBytes }

// Estimate guesses how many rows of a table a constraint lets through, from the metadata
// of parts and page groups alone. It is for planning: it reads nothing and promises
// nothing. Errors are those of Scan.
func (s *Snapshot) Estimate(ctx context.Context, name TableName, constraint predicate.Constraint) (int64, error) {
	t, filters, err := s.resolve(name, constraint)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, wrap(err, "estimate table %s", nameOf(t.Def))
	}
	n, err := table.EstimateRows(s.c.env, t.Def, t.Parts, filters)
	if err != nil {
		return 0, readError(err, "estimate", nameOf(t.Def).String())
	}
	return n, nil
}
