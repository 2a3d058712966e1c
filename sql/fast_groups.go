package sql

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/table"
)

// maxFastGroups is how many groups the fast path makes; more are DuckDB's, whose hash
// tables are made for that.
const maxFastGroups = 4096

// fastGroups is the GROUP BY of a fast plan. Items of the result are keys or aggregates.
type fastGroups struct {
	keys   []string
	items  []groupItem
	orders []tree.Order
	// crowded is one more than the version in which there were too many groups: it
	// is not tried again there.
	crowded atomic.Uint64
}

// groupItem is key number key, or when that is negative aggregate number aggregate.
type groupItem struct{ key, aggregate int }

// addGroups takes a GROUP BY of columns whose values the result can hold as they are.
func (f *fastPlan) addGroups(simple *tree.Simple, result *arrow.Schema) bool {
	g := &fastGroups{orders: simple.Orders}
	at := map[int]int{}
	for _, c := range simple.Groups {
		kind, ok := predicate.KindOf(c.Type)
		if !ok || kind == predicate.KindFloat || !appendable(c.Type) {
			return false
		}
		if _, ok := at[c.Index]; !ok {
			at[c.Index] = len(g.keys)
			g.keys = append(g.keys, c.Name)
		}
	}
	for i, item := range simple.Items {
		if item.Function == "" {
			if !arrow.TypeEqual(item.Column.Type, result.Field(i).Type) {
				return false
			}
			g.items = append(g.items, groupItem{key: at[item.Column.Index], aggregate: -1})
			continue
		}
		if !f.addAggregate(item, result.Field(i).Type) {
			return false
		}
		g.items = append(g.items, groupItem{key: -1, aggregate: len(f.aggregates) - 1})
	}
	for _, o := range g.orders {
		if o.Item < 0 {
			return false
		}
	}
	f.groups = g
	return true
}

// appendable says whether appendValue takes values of the type.
func appendable(t arrow.DataType) bool {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	switch b.(type) {
	case *array.Float32Builder, *array.Float64Builder, *array.ExtensionBuilder:
		return false
	}
	kind, ok := predicate.KindOf(t)
	return ok && appendValue(b, zeroOf(kind))
}

// zeroOf gives some value of a kind.
func zeroOf(k predicate.Kind) predicate.Value {
	switch k {
	case predicate.KindBool:
		return predicate.Bool(false)
	case predicate.KindInt:
		return predicate.Int(0)
	case predicate.KindUint:
		return predicate.Uint(0)
	case predicate.KindBytes:
		return predicate.Bytes("")
	case predicate.KindDecimal:
		return predicate.Decimal(decimalZero)
	}
	return predicate.Float(0)
}

// group answers a GROUP BY; nil when DuckDB has to.
func (f *fastPlan) group(x *execution, in settings, snapshot *connector.Snapshot, bound constraint.Result) (*output, error) {
	if f.groups.crowded.Load() == snapshot.Version()+1 {
		return nil, nil
	}
	groups, stats, ok, err := snapshot.Groups(x.ctx, connector.GroupRequest{
		Table: f.table, Keys: f.groups.keys, Aggregates: f.aggregates, Constraint: bound.Constraint,
		MaxGroups: maxFastGroups, NoIndexes: !in.indexes,
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		f.groups.crowded.Store(snapshot.Version() + 1)
		return nil, nil
	}
	for i := range groups {
		if ok, err := f.decide(groups[i].States); !ok {
			return nil, err
		}
	}
	f.arrange(groups)
	groups = groups[min(f.offset, int64(len(groups))):]
	if f.limit >= 0 {
		groups = groups[:min(f.limit, int64(len(groups)))]
	}
	rows := &batchRows{}
	if len(groups) > 0 {
		batch, ok := f.groupBatch(groups)
		if !ok {
			return nil, nil
		}
		rows.batches = []arrow.RecordBatch{batch}
	}
	x.onEnd(rows)
	return &output{schema: f.schema, rows: rows, stats: func(s *Stats) {
		s.add(stats)
		s.FastPath = true
	}}, nil
}

// groupBatch makes the rows of the groups; false when DuckDB must decide.
func (f *fastPlan) groupBatch(groups []table.Group) (arrow.RecordBatch, bool) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, f.schema)
	defer b.Release()
	for i, item := range f.groups.items {
		for g := range groups {
			if !f.appendItem(b.Field(i), item, &groups[g]) {
				return nil, false
			}
		}
	}
	return b.NewRecordBatch(), true
}

func (f *fastPlan) appendItem(b array.Builder, item groupItem, g *table.Group) bool {
	if item.key < 0 {
		return f.outputs[item.aggregate].append(b, &g.States[item.aggregate])
	}
	if g.Keys[item.key].Kind() == predicate.KindInvalid {
		b.AppendNull()
		return true
	}
	return appendValue(b, g.Keys[item.key])
}

// arrange orders the groups.
func (f *fastPlan) arrange(groups []table.Group) {
	if len(f.groups.orders) == 0 {
		return
	}
	slices.SortStableFunc(groups, func(a, b table.Group) int {
		for _, o := range f.groups.orders {
			if c := f.compare(o, &a, &b); c != 0 {
				return c
			}
		}
		return 0
	})
}

// compare orders two groups by one term.
func (f *fastPlan) compare(o tree.Order, a, b *table.Group) int {
	item := f.groups.items[o.Item]
	var nullA, nullB bool
	if item.key >= 0 {
		nullA, nullB = a.Keys[item.key].Kind() == predicate.KindInvalid, b.Keys[item.key].Kind() == predicate.KindInvalid
	} else {
		nullA, nullB = f.outputs[item.aggregate].null(&a.States[item.aggregate]), f.outputs[item.aggregate].null(&b.States[item.aggregate])
	}
	if nullA || nullB {
		c := cmp.Compare(number(nullA), number(nullB))
		if o.NullsFirst {
			c = -c
		}
		return c
	}
	c := 0
	if item.key >= 0 {
		c = a.Keys[item.key].Compare(b.Keys[item.key])
	} else {
		c = f.outputs[item.aggregate].compare(&a.States[item.aggregate], &b.States[item.aggregate])
	}
	if o.Desc {
		c = -c
	}
	return c
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// null says whether the aggregate's value is NULL.
func (o *aggregateOutput) null(s *table.AggregateState) bool {
	return o.function > table.Count && !s.Valid
}

// compare orders two values of an aggregate that are not NULL.
func (o *aggregateOutput) compare(a, b *table.AggregateState) int {
	switch o.function {
	case table.Min:
		return a.Min.Compare(b.Min)
	case table.Max:
		return a.Max.Compare(b.Max)
	case table.Sum:
		if arrow.IsFloating(o.column.ID()) {
			return cmp.Compare(a.SumFloat, b.SumFloat)
		}
		return a.SumInt.Cmp(b.SumInt)
	case table.Avg:
		if arrow.IsFloating(o.column.ID()) {
			return cmp.Compare(a.SumFloat/float64(a.Count), b.SumFloat/float64(b.Count))
		}
		return cmp.Compare(average(a, o.column), average(b, o.column))
	}
	return cmp.Compare(a.Count, b.Count)
}
