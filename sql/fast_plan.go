package sql

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/table"
)

// fastPlan is a query of one table that the connector answers by itself when the
// constraint is the whole WHERE clause. Names and types of its result are
// DuckDB's.
type fastPlan struct {
	table  connector.TableName
	schema *arrow.Schema
	where  *constraint.Predicate

	// Either aggregates, with groups or without, or columns.
	groups     *fastGroups
	aggregates []connector.AggregateSpec
	outputs    []aggregateOutput
	columns    []string
	order      []connector.SortSpec
	limit      int64 // -1: none
	offset     int64
}

// aggregateOutput says how the state of an aggregate becomes a value.
type aggregateOutput struct {
	function table.AggregateFunc
	column   arrow.DataType // what is aggregated; nil for count(*)
	result   arrow.DataType
}

// newFastPlan gives nil when the query has no fast path.
func newFastPlan(p *plan) *fastPlan {
	simple := p.query.Simple
	if simple == nil || p.tables[0].view != nil || p.schema == nil || len(simple.Items) != p.schema.NumFields() {
		return nil
	}
	f := &fastPlan{
		table: p.tables[0].name, schema: p.schema, where: p.query.Scans[0].Where,
		limit: simple.Limit, offset: max(simple.Offset, 0),
	}
	if simple.Grouped {
		if !f.addGroups(simple, p.schema) {
			return nil
		}
		return f
	}
	for i, item := range simple.Items {
		if simple.Aggregate && !f.addAggregate(item, p.schema.Field(i).Type) || !simple.Aggregate && !f.addColumn(item, p.schema.Field(i).Type) {
			return nil
		}
	}
	for _, o := range simple.Orders {
		f.order = append(f.order, connector.SortSpec{Column: o.Column.Name, Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	if simple.Aggregate && (f.limit >= 0 || f.offset > 0 || len(f.order) > 0) {
		return nil
	}
	return f
}

// addColumn takes a plain column, if its batches need no conversion.
func (f *fastPlan) addColumn(item tree.Item, result arrow.DataType) bool {
	f.columns = append(f.columns, item.Column.Name)
	return arrow.TypeEqual(item.Column.Type, result)
}

var aggregateFunctions = map[string]table.AggregateFunc{
	"count_star": table.CountStar, "count": table.Count, "min": table.Min, "max": table.Max,
	"sum": table.Sum, "avg": table.Avg,
}

// addAggregate takes an aggregate whose value can be made as DuckDB makes it. Sums
// and averages of floats depend on the order of addition, which DuckDB itself does
// not fix, as its threads add what they happen to read: the last bits may differ,
// there as here. The table adds in the order of rows and page groups.
func (f *fastPlan) addAggregate(item tree.Item, result arrow.DataType) bool {
	function := aggregateFunctions[item.Function]
	out := aggregateOutput{function: function, result: result}
	spec := connector.AggregateSpec{Func: function}
	if function != table.CountStar {
		out.column, spec.Column = item.Column.Type, item.Column.Name
		kind, ok := predicate.KindOf(item.Column.Type)
		if !ok {
			return false
		}
		exact := numeric(item.Column.Type) && kind != predicate.KindFloat
		float := kind == predicate.KindFloat && arrow.IsFloating(item.Column.Type.ID()) && result.ID() == arrow.FLOAT64
		switch function {
		case table.Min, table.Max:
			ok = arrow.TypeEqual(item.Column.Type, result) && kind != predicate.KindBool
		case table.Sum:
			ok = exact && result.ID() == arrow.DECIMAL128 || float
		case table.Avg:
			ok = exact && result.ID() == arrow.FLOAT64 || float
		}
		if !ok {
			return false
		}
	}
	f.aggregates = append(f.aggregates, spec)
	f.outputs = append(f.outputs, out)
	return true
}

// numeric says whether DuckDB adds the type up as a number.
func numeric(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || t.ID() == arrow.DECIMAL128
}

// run answers the query, or gives nil when DuckDB has to: the constraint is not
// the whole WHERE clause, or a value is one that DuckDB alone knows to treat.
func (f *fastPlan) run(x *execution, in settings, snapshot *connector.Snapshot, bound constraint.Result) (*output, error) {
	if !bound.Exact {
		return nil, nil
	}
	if f.groups != nil {
		return f.group(x, in, snapshot, bound)
	}
	if f.columns != nil {
		return f.scan(x, in, snapshot, bound.Constraint)
	}
	states, stats, err := snapshot.Aggregate(x.ctx, connector.AggregateRequest{
		Table: f.table, Aggregates: f.aggregates, Constraint: bound.Constraint, NoIndexes: !in.indexes,
	})
	if err != nil {
		return nil, err
	}
	if ok, err := f.decide(states); !ok {
		return nil, err
	}
	batch, ok := f.batch(states)
	if !ok {
		return nil, nil
	}
	return directOutput(x, f.schema, batch, stats), nil
}

// direct is an output of one batch, in one piece: point queries are many.
type direct struct {
	output
	rows  batchRows
	batch [1]arrow.RecordBatch
	read  table.ScanStats
}

// directOutput takes over the batch, which the statement gives up at its end if nobody took it.
func directOutput(x *execution, schema *arrow.Schema, batch arrow.RecordBatch, read table.ScanStats) *output {
	d := &direct{batch: [1]arrow.RecordBatch{batch}, read: read}
	d.rows.batches = d.batch[:]
	x.onEnd(&d.rows)
	d.output = output{schema: schema, rows: &d.rows, stats: d.addTo}
	return &d.output
}

func (d *direct) addTo(s *Stats) {
	s.add(d.read)
	s.FastPath = true
}

// request is the scan of a projection.
func (f *fastPlan) request(in settings, c predicate.Constraint) connector.ScanRequest {
	r := connector.ScanRequest{Table: f.table, Columns: f.columns, Constraint: c, Limit: -1, NoIndexes: !in.indexes, Order: f.order}
	if f.limit > 0 && f.limit+f.offset >= f.limit {
		r.Limit = f.limit + f.offset
	}
	return r
}

// scan answers a projection.
func (f *fastPlan) scan(x *execution, in settings, snapshot *connector.Snapshot, c predicate.Constraint) (*output, error) {
	if f.limit == 0 {
		return &output{schema: f.schema, rows: &batchRows{}, stats: func(s *Stats) { s.FastPath = true }}, nil
	}
	request, begin := f.request(in, c), snapshot.Scan
	if f.order != nil {
		begin = snapshot.OrderedScan
	}
	scan, err := begin(x.ctx, request)
	if err != nil || scan == nil {
		return nil, err
	}
	x.onEnd(scan)
	rows := &scanRows{run: x, scan: scan, schema: f.schema, skip: f.offset, left: f.limit}
	return &output{schema: f.schema, rows: rows, stats: func(s *Stats) {
		s.add(scan.Stats())
		s.FastPath = true
	}}, nil
}
