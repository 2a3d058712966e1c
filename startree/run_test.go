package startree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// testAggregates are all that the test table has, sketches aside.
func testAggregates() []Aggregate {
	out := []Aggregate{{Func: CountStar}}
	for _, c := range []table.ColumnID{colA, colB, colC, colTS, colF, colG, colX, colY, colZ, colS, colU} {
		out = append(out, Aggregate{Count, c}, Aggregate{Min, c}, Aggregate{Max, c}, Aggregate{CountDistinct, c})
		if slices.Contains([]table.ColumnID{colA, colX, colY, colZ, colU}, c) {
			out = append(out, Aggregate{Sum, c}, Aggregate{Avg, c})
		}
		if slices.Contains([]table.ColumnID{colA, colY, colZ, colU}, c) {
			out = append(out, Aggregate{StddevSamp, c}, Aggregate{StddevPop, c}, Aggregate{VarSamp, c}, Aggregate{VarPop, c})
		}
	}
	return out
}

func pick[T any](r *rand.Rand, from []T, most int) []T {
	var out []T
	for range min(r.IntN(most+1), most*len(from)) {
		out = append(out, from[r.IntN(len(from))])
	}
	return out
}

var testDimensions = []Dimension{
	{Column: colA},
	{Column: colB},
	{Column: colC},
	{Column: colC, Bucket: BucketWeek},
	{Column: colC, Bucket: BucketMonth},
	{Column: colTS, Bucket: BucketHour},
	{Column: colTS, Bucket: BucketDay},
	{Column: colTS, Bucket: BucketQuarter},
	{Column: colF},
	{Column: colG},
	{Column: colTS},
}

// randomDomain gives a domain of a column of the test table.
func randomDomain(r *rand.Rand, base *table.Definition, id table.ColumnID) predicate.Domain {
	c, _ := base.ColumnByID(id)
	kind, _ := predicate.KindOf(c.Type)
	null := r.IntN(3) == 0
	value := func() predicate.Value {
		batch := testBatch(base, []testRow{randomRow(r)})
		defer batch.Release()
		for i := range base.Columns {
			if base.Columns[i].ID == id && batch.Column(i).IsValid(0) {
				v := predicate.At(batch.Column(i), 0)
				if kind == predicate.KindBytes {
					v = predicate.Bytes(string([]byte(v.AsBytes())))
				}
				return v
			}
		}
		return predicate.Value{}
	}
	var vs []predicate.Value
	for len(vs) < 3 {
		if v := value(); v.Kind() == kind {
			vs = append(vs, v)
		}
	}
	slices.SortFunc(vs, predicate.Value.Compare)
	bound := func(v predicate.Value) predicate.Bound {
		if r.IntN(2) == 0 {
			return predicate.AtLeast(v)
		}
		return predicate.Beyond(v)
	}
	switch r.IntN(6) {
	case 0:
		return predicate.OfValues(kind, null, vs...)
	case 1:
		return predicate.OfRanges(kind, null, predicate.Range{Low: bound(vs[0])})
	case 2:
		return predicate.OfRanges(kind, null, predicate.Range{High: bound(vs[1])})
	case 3:
		return predicate.OfRanges(kind, null, predicate.Range{High: bound(vs[0])}, predicate.Range{Low: bound(vs[1]), High: bound(vs[2])})
	case 4:
		return predicate.OnlyNull(kind)
	}
	return predicate.OfRanges(kind, null, predicate.Range{Low: bound(vs[0]), High: bound(vs[2])})
}

func randomConstraint(r *rand.Rand, base *table.Definition, columns []table.ColumnID) predicate.Constraint {
	domains := map[string]predicate.Domain{}
	for _, id := range columns {
		c, _ := base.ColumnByID(id)
		domains[c.Name] = randomDomain(r, base, id)
	}
	return predicate.Where(domains)
}

// TestRunOverBaseEqualsDuckDB asks random grouped aggregates of the base table alone.
func TestRunOverBaseEqualsDuckDB(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	base, o := testTable(), newOracle(t)
	defer o.close()
	var parts []*table.Part
	defer func() { dropParts(parts) }()
	for i := range 4 {
		rows := randomRows(r, 100+300*i)
		o.add(rows)
		parts = append(parts, addPart(t, w, base, uint64(i+1), rows))
	}
	columns := []table.ColumnID{colA, colB, colC, colTS, colF, colG, colX, colY, colS}
	for i := range 300 {
		q := Query{GroupBy: pick(r, testDimensions, 3), Aggregates: pick(r, testAggregates(), 5), Filter: randomConstraint(r, base, pick(r, columns, 2))}
		if len(q.Aggregates)+len(q.GroupBy) == 0 {
			continue
		}
		text := sqlText(base, &q)
		got, _ := answer(t, RunRequest{Env: w.Env, Base: base, BaseParts: parts, Query: &q, NoIndexes: i%4 == 0})
		requireSame(t, o.query(text), got, len(q.GroupBy), fmt.Sprintf("query %d: %s", i, text))
	}
}

// TestScalarOverNothing has one row for no group column, none otherwise.
func TestScalarOverNothing(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	base := testTable()
	q := Query{Aggregates: []Aggregate{{Func: CountStar}, {Sum, colX}, {CountDistinct, colS}, {Min, colB}, {ApproxDistinct, colX}, {VarPop, colZ}, {Avg, colY}}}
	got, _ := answer(t, RunRequest{Env: w.Env, Base: base, Query: &q})
	require.Equal(t, [][]string{{"0", "NULL", "0", "NULL", "0", "NULL", "NULL"}}, got)
	q.GroupBy = []Dimension{{Column: colA}}
	got, _ = answer(t, RunRequest{Env: w.Env, Base: base, Query: &q})
	require.Empty(t, got)
}

var dimensionColumns = []table.ColumnID{colA, colB, colC, colTS, colF, colG}
