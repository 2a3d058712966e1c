package connector

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table/catalog"
)

// GroupKey is a grouping column of an aggregation by names: a column, or with a Bucket
// ("second" ... "year") the time bucket its value lies in.
type GroupKey struct{ Column, Bucket string }

// NamedAggregate is an aggregate by names. Func is one of startree's: count_star, count, sum,
// avg, min, max, count_distinct, approx_count_distinct, stddev_samp, stddev_pop, var_samp,
// var_pop. Column is "" for count_star; count without a column is count_star.
type NamedAggregate struct{ Func, Column string }

// AggregationRequest is a grouped aggregate as an engine pushes it down.
type AggregationRequest struct {
	Table      TableName
	Constraint predicate.Constraint
	// GroupBy gives one row for each different combination of values; none: one row for
	// all rows, even over no rows.
	GroupBy    []GroupKey
	Aggregates []NamedAggregate
	// NoCubes leaves the answer to the table's own rows, AnyCube to a cube that can answer
	// even where the table's rows are fewer, NoIndexes reads everything.
	NoCubes, AnyCube, NoIndexes bool
}

// Aggregation is a planned aggregation over one snapshot, which the caller keeps open while
// it is used. Run may be called any number of times, also at once.
type Aggregation struct {
	snapshot *Snapshot
	request  CubeRequest
	schema   *arrow.Schema
	verdicts []CubeVerdict
	rows     int64
}

// PlanAggregation checks an aggregation and chooses what answers it: a cube that reads
// less than the table, else the table. Errors: those of Table, COLUMN_NOT_FOUND,
// INVALID_ARGUMENT for a name that is none, NOT_SUPPORTED for what has to be computed from a
// plain scan.
func (s *Snapshot) PlanAggregation(ctx context.Context, r AggregationRequest) (*Aggregation, error) {
	t, filters, err := s.resolve(r.Table, r.Constraint)
	if err != nil {
		return nil, err
	}
	query, err := namedQuery(t, r)
	if err != nil {
		return nil, err
	}
	schema, err := query.ResultSchema(t.Def)
	if err != nil {
		return nil, Errorf(CodeNotSupported, "the aggregation over table %s is not supported: %w; scan the table plainly and aggregate the rows", nameOf(t.Def), err)
	}
	a := &Aggregation{snapshot: s, schema: schema}
	a.request = CubeRequest{Table: nameOf(t.Def), Query: query, AnyCube: r.AnyCube, NoIndexes: r.NoIndexes}
	if !r.NoCubes && len(t.Def.Barriers) > 0 {
		if a.request.Cube, a.verdicts, err = s.ChooseCube(ctx, a.request); err != nil {
			return nil, err
		}
	}
	switch {
	case len(query.GroupBy) == 0:
		a.rows = 1
	case a.request.Cube != nil:
		a.rows = a.request.Cube.coverage.EstimatedRows()
	default:
		if a.rows, err = s.estimate(t, filters); err != nil {
			return nil, err
		}
	}
	return a, ctx.Err()
}

// namedQuery finds the columns and functions of a request.
func namedQuery(t *catalog.TableState, r AggregationRequest) (*startree.Query, error) {
	if len(r.GroupBy) == 0 && len(r.Aggregates) == 0 {
		return nil, Errorf(CodeInvalidArgument, "the aggregation over table %s has neither columns to group by nor aggregates", nameOf(t.Def))
	}
	q := &startree.Query{Filter: r.Constraint}
	for _, k := range r.GroupBy {
		column, err := findColumn(t.Def, k.Column)
		if err != nil {
			return nil, err
		}
		bucket := startree.Bucket(strings.ToLower(k.Bucket))
		if !bucket.Valid() {
			return nil, Errorf(CodeInvalidArgument, "group by column %s: the bucket %q is not known; use second, minute, hour, day, week, month, quarter or year",
				column.Name, k.Bucket)
		}
		q.GroupBy = append(q.GroupBy, NewDimension(column, bucket))
	}
	for _, n := range r.Aggregates {
		f, ok := startree.ParseFunc(strings.ToLower(n.Func))
		if !ok {
			return nil, Errorf(CodeInvalidArgument, "the aggregate function %q is not known; use %s", n.Func, strings.Join(startree.FuncNames(), ", "))
		}
		if f == startree.Count && n.Column == "" {
			f = startree.CountStar
		}
		aggregate := startree.Aggregate{Func: f}
		switch {
		case f == startree.CountStar && n.Column != "":
			return nil, Errorf(CodeInvalidArgument, "count_star takes no column, got %s: count_star counts all rows, count those with a value", n.Column)
		case f != startree.CountStar && n.Column == "":
			return nil, Errorf(CodeInvalidArgument, "the aggregate %s names no column", f)
		case f != startree.CountStar:
			column, err := findColumn(t.Def, n.Column)
			if err != nil {
				return nil, err
			}
			aggregate.Column = column.ID
		}
		q.Aggregates = append(q.Aggregates, aggregate)
	}
	return q, nil
}

// Table is the name of the table as it was created.
func (a *Aggregation) Table() TableName { return a.request.Table }

// Schema is that of the rows: one column for each GroupBy, then one for each aggregate,
// with the types that SQL gives them.
func (a *Aggregation) Schema() *arrow.Schema { return a.schema }

// EstimatedRows is an upper bound of the groups.
func (a *Aggregation) EstimatedRows() int64 { return a.rows }

// Cube names the cube that answers; false when the table does.
func (a *Aggregation) Cube() (TableName, bool) {
	if a.request.Cube == nil {
		return TableName{}, false
	}
	return a.request.Cube.Name(), true
}

// Verdicts says of every cube of the table how it stands to the aggregation.
func (a *Aggregation) Verdicts() []CubeVerdict { return a.verdicts }

// Run answers. The caller closes the rows, whose groups come in any order. Where cells
// turn out to be unreadable, or need more memory than there is, the table answers. Errors are those of AggregateGroups.
func (a *Aggregation) Run(ctx context.Context) (*startree.Rows, error) {
	rows, err := a.snapshot.AggregateGroups(ctx, a.request)
	if err == nil || a.request.Cube == nil || ctx.Err() != nil {
		return rows, err
	}
	switch CodeOf(err) {
	case CodeCorruptData, CodeDiskError, CodeMemoryLimitExceeded:
		plain := a.request
		plain.Cube = nil
		a.snapshot.c.log.Warn("the table answers in place of a cube", "cube", a.request.Cube.Name().String(), "error", err)
		return a.snapshot.AggregateGroups(ctx, plain)
	}
	return nil, err
}
