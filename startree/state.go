package startree

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// stateKind is a kind of mergeable state.
type stateKind uint8

const (
	stateRows    stateKind = iota // number of rows
	stateCount                    // number of values
	stateSum                      // sum of values, NULL for none
	stateMin                      // least value, NULL for none
	stateMax                      // greatest value, NULL for none
	stateSet                      // set of values
	stateSketch                   // HyperLogLog of values
	stateMoments                  // number, mean, squared distances
)

var stateNames = [...]string{
	stateRows: "rows", stateCount: "count", stateSum: "sum", stateMin: "min", stateMax: "max",
	stateSet: "set", stateSketch: "sketch", stateMoments: "moments",
}

// stateSpec is one state over one column.
type stateSpec struct {
	kind   stateKind
	column table.ColumnID // 0 for stateRows
}

// needs gives the states that an aggregate is finished from; primary first.
func (a Aggregate) needs() []stateSpec {
	one := func(k stateKind) []stateSpec { return []stateSpec{{k, a.Column}} }
	switch a.Func {
	case CountStar:
		return []stateSpec{{stateRows, 0}}
	case Count:
		return one(stateCount)
	case Sum:
		return one(stateSum)
	case Avg:
		return []stateSpec{{stateSum, a.Column}, {stateCount, a.Column}}
	case Min:
		return one(stateMin)
	case Max:
		return one(stateMax)
	case CountDistinct:
		return one(stateSet)
	case ApproxDistinct:
		return one(stateSketch)
	}
	return one(stateMoments)
}

// checkAggregate tells whether the function takes the column; the column is nil when
// the table has none of the ID.
func checkAggregate(a Aggregate, c *table.Column) error {
	if !a.Func.valid() {
		return fmt.Errorf("aggregate function %d is not known", uint8(a.Func))
	}
	if a.Func == CountStar {
		if a.Column != 0 {
			return fmt.Errorf("count(*) takes no column, it has column %d", a.Column)
		}
		return nil
	}
	if c == nil {
		return fmt.Errorf("%s: the table has no column %d", a.Func, a.Column)
	}
	f, err := formOf(c.Type)
	if err != nil {
		return fmt.Errorf("%s(%s): %w", a.Func, c.Name, err)
	}
	switch a.Func {
	case Sum, Avg, StddevSamp, StddevPop, VarSamp, VarPop:
		if f.sumClass() == sumNone {
			return fmt.Errorf("%s(%s): columns of type %s are not added up: %w", a.Func, c.Name, c.Type, table.ErrTypeNotSupported)
		}
	}
	return nil
}

// sumClass says how values of a type are added up.
type sumClass uint8

const (
	sumNone sumClass = iota
	sumInt
	sumDecimal
	sumFloat
)

func (f form) sumClass() sumClass {
	switch {
	case arrow.IsInteger(f.id):
		return sumInt
	case f.kind == predicate.KindFloat:
		return sumFloat
	case f.kind == predicate.KindDecimal && f.typ.(arrow.DecimalType).GetPrecision() <= 38:
		return sumDecimal
	}
	return sumNone
}

var (
	typeInt64   = arrow.PrimitiveTypes.Int64
	typeFloat64 = arrow.PrimitiveTypes.Float64
	typeHuge    = &arrow.Decimal128Type{Precision: 38}
)

// types gives the types of a state's columns; f is the form of its base column.
func (s stateSpec) types(f form) []arrow.DataType {
	switch s.kind {
	case stateRows, stateCount:
		return []arrow.DataType{typeInt64}
	case stateSum:
		switch f.sumClass() {
		case sumFloat:
			return []arrow.DataType{typeFloat64, typeFloat64}
		case sumDecimal:
			// 38 digits and as many more as 2^63 rows can add.
			return []arrow.DataType{&arrow.Decimal256Type{Precision: 76, Scale: f.typ.(arrow.DecimalType).GetScale()}}
		}
		return []arrow.DataType{typeHuge}
	case stateMin, stateMax:
		return []arrow.DataType{f.typ}
	case stateSet, stateSketch:
		return []arrow.DataType{arrow.BinaryTypes.Binary}
	}
	return []arrow.DataType{typeInt64, typeFloat64, typeFloat64}
}

// slot is a state of a cube and where its table keeps it.
type slot struct {
	spec stateSpec
	form form
	cols []table.ColumnID // of the state table
}

// layout is the state table's shape: its column IDs are 1 for __mask, then the
// dimensions, then the states.
type layout struct {
	def   *Definition
	dims  []dimension
	slots []slot
}

// dimension is a Dimension with what its type implies.
type dimension struct {
	Dimension
	source form // of the base column
	form   form // of the dimension's values
	bucket bucketer
}

const maskColumn = table.ColumnID(1)

func dimColumn(i int) table.ColumnID { return table.ColumnID(2 + i) }

// newDimension resolves a dimension against the base table.
func newDimension(d Dimension, base *table.Definition) (dimension, error) {
	c, ok := base.ColumnByID(d.Column)
	if !ok {
		return dimension{}, fmt.Errorf("dimension %q: the table has no column %d", d.Name, d.Column)
	}
	f, err := formOf(c.Type)
	if err != nil {
		return dimension{}, fmt.Errorf("dimension %q: %w", c.Name, err)
	}
	out := dimension{Dimension: d, source: f, form: f}
	if d.Bucket == BucketNone {
		return out, nil
	}
	if err := checkBucket(c.Type, d.Bucket); err != nil {
		return dimension{}, fmt.Errorf("dimension %q: %w", c.Name, err)
	}
	out.bucket = newBucketer(c.Type, d.Bucket)
	out.form, err = formOf(bucketType)
	return out, err
}

// newLayout settles dimensions and states; the states of all aggregates once each, the
// number of rows first.
func newLayout(d *Definition, base *table.Definition) (*layout, error) {
	l := &layout{def: d}
	for _, dim := range d.Dimensions {
		resolved, err := newDimension(dim, base)
		if err != nil {
			return nil, err
		}
		l.dims = append(l.dims, resolved)
	}
	next := dimColumn(len(l.dims))
	for _, a := range append([]Aggregate{{Func: CountStar}}, d.Aggregates...) {
		var f form
		if c, ok := base.ColumnByID(a.Column); a.Func != CountStar {
			if !ok {
				return nil, checkAggregate(a, nil)
			}
			if err := checkAggregate(a, &c); err != nil {
				return nil, err
			}
			f, _ = formOf(c.Type)
		}
		for _, spec := range a.needs() {
			if l.slot(spec) != nil {
				continue
			}
			s := slot{spec: spec, form: f}
			for range spec.types(f) {
				s.cols = append(s.cols, next)
				next++
			}
			l.slots = append(l.slots, s)
		}
	}
	return l, nil
}

// slot finds a state, nil when the cube has none.
func (l *layout) slot(spec stateSpec) *slot {
	for i := range l.slots {
		if l.slots[i].spec == spec {
			return &l.slots[i]
		}
	}
	return nil
}
