package startree

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/table"
)

func bigInt(v int64) *big.Int { return big.NewInt(v) }

func driverValues(args []any) []driver.Value {
	out := make([]driver.Value, len(args))
	for i, a := range args {
		out[i] = a
	}
	return out
}

// answer runs a query and gives its rows as texts.
func answer(t tb, r RunRequest) ([][]string, RunStats) {
	t.Helper()
	rows, err := Run(context.Background(), r)
	require.NoError(t, err)
	defer rows.Close()
	var out [][]string
	for {
		batch, err := rows.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return out, rows.Stats()
		}
		require.NoError(t, err)
		require.True(t, batch.Schema().Equal(rows.Schema()))
		for i := range int(batch.NumRows()) {
			row := make([]string, batch.NumCols())
			for c := range row {
				row[c] = cellText(batch.Column(c), i)
			}
			out = append(out, row)
		}
		batch.Release()
	}
}

func cellText(arr arrow.Array, i int) string {
	if arr.IsNull(i) {
		return "NULL"
	}
	switch a := arr.(type) {
	case *array.Date32:
		return strconv.Itoa(int(a.Value(i)))
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(arrow.DecimalType).GetScale())
	case *array.Float64:
		return strconv.FormatFloat(a.Value(i), 'g', -1, 64)
	case *array.Boolean:
		return strconv.FormatBool(a.Value(i))
	case *array.String:
		return a.Value(i)
	}
	return arr.ValueStr(i)
}

// requireSame compares answers as multisets; texts that are floats in the columns that
// are named may differ in their last bits.
func requireSame(t tb, want, got [][]string, keys int, what string) {
	t.Helper()
	require.Len(t, got, len(want), "number of groups: %s\nwant %v\ngot %v", what, want, got)
	order := func(rows [][]string) {
		for _, r := range rows {
			for i := range keys {
				if v, err := strconv.ParseFloat(r[i], 64); err == nil && v == 0 {
					r[i] = "0" // -0.0 and 0.0 are one group
				} else if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) || err == nil && strings.Contains(r[i], ".") {
					r[i] = strconv.FormatFloat(v, 'g', -1, 64)
				}
			}
		}
		slices.SortFunc(rows, func(a, b []string) int { return slices.Compare(a[:keys], b[:keys]) })
	}
	order(want)
	order(got)
	for i := range want {
		for c := range want[i] {
			if !sameText(want[i][c], got[i][c]) {
				t.Fatalf("row %d column %d: want %s, got %s: %s\nwant %v\ngot  %v", i, c, want[i][c], got[i][c], what, want[i], got[i])
			}
		}
	}
}

func sameText(a, b string) bool {
	if a == b {
		return true
	}
	v, err := strconv.ParseFloat(a, 64)
	w, err2 := strconv.ParseFloat(b, 64)
	if err != nil || err2 != nil {
		return false
	}
	if math.IsNaN(v) || math.IsNaN(w) {
		return math.IsNaN(v) && math.IsNaN(w)
	}
	if math.IsInf(v, 0) || math.IsInf(w, 0) {
		return v == w
	}
	if !strings.ContainsAny(a+b, ".eE") {
		return v == w && strings.Contains(a+b, "-0")
	}
	return math.Abs(v-w) <= 1e-9*max(1, math.Abs(v), math.Abs(w))
}

func decimal(t tb, text string) decimal256.Num {
	n, ok := new(big.Int).SetString(text, 10)
	require.True(t, ok)
	return decimal256.FromBigInt(n)
}

// fixFloats writes floats as integers.
func fixFloats(rows [][]string) [][]string {
	for _, r := range rows {
		for i, v := range r {
			if f, err := strconv.ParseFloat(v, 64); err == nil && strings.Contains(v, "e") {
				r[i] = strconv.FormatFloat(f, 'f', 0, 64)
			}
		}
	}
	return rows
}

// wideParts makes a part whose column k has 1+k%7 values.
func wideParts(t tb, w *world, d *table.Definition, rows int64) *table.Part {
	id, _ := w.nextID()
	b, err := table.NewBuilder(w.Env, d, id)
	require.NoError(t, err)
	r := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer r.Release()
	for row := range rows {
		for k := range d.Columns {
			v := int64(wordHash(uint64(row)<<8|uint64(k)) % uint64(1+k%7))
			r.Field(k).(*array.Int64Builder).Append(v)
		}
	}
	batch := r.NewRecordBatch()
	defer batch.Release()
	require.NoError(t, b.Append(context.Background(), batch))
	p, err := b.Finish(context.Background())
	require.NoError(t, err)
	p.SetSequence(1, 1)
	return p
}
