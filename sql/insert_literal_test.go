package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/sql/duck"
)

// literalTypes are the column types that a random INSERT writes to.
var literalTypes = []string{
	"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "REAL", "DOUBLE",
	"DECIMAL(4,1)", "DECIMAL(9,2)", "DECIMAL(18,4)", "DECIMAL(38,10)", "VARCHAR", "VARBINARY", "DATE", "TIME", "TIME(9)",
	"TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP", "TIMESTAMP(9)", "TIMESTAMP WITH TIME ZONE", "UUID",
}

// literalOdds are texts of values at the edges, right and wrong.
var literalOdds = []string{
	"NULL", "null", "TRUE", "false", "'t'", "'F'", "'yes'", "'TRUE'", "'1'", "''", "' '", "' 12'", "'+5'", "'0x1F'", "'1_000'", "'007'", "007", "-0", "'-0'", "-0.0", "'-0.0'", "0.0", "-0e0",
	"127", "128", "-128", "-129", "255", "256", "32767", "32768", "65535", "65536", "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296",
	"16777215", "16777217", "33554433", "9007199254740993", "999999999999999999", "-999999999999999999", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "99999999999999999999999999999999999999",
	"0.1", "-0.1", "0.3", "1.5", "2.5", "-2.5", "1.50", "999.9", "999.95", "9999.9", "1.23456", "123456789.123456789", "16777217.5", "0.000000000000000001", "1.", ".5", "1e3", "1e400", "1e39", "1.5e0", "3.4028235e38", "1e-50", "4.9e-324",
	"'0.1'", "'1.50'", "'1.5'", "'1e3'", "'16777217.5'", "'nan'", "'inf'", "'0.30000001192092896'", "'1.000'", "'.5'", "'5.'", "'12345678901234567890'",
	"'2020-02-29'", "'2021-02-29'", "'0000-01-01'", "'0001-01-01'", "'9999-12-31'", "'10000-01-01'", "'2020-1-1'", "'infinity'", "'epoch'", "DATE '2020-01-31'", "date '2020-13-01'",
	"'2020-01-01 10:00:00'", "'2020-01-01T10:00:00.5'", "'2020-01-01 10:00:00.123456'", "'2020-01-01 10:00:00.1234567'", "'2020-01-01 10:00:00Z'", "'2020-01-01 10:00:00+02'", "'2020-01-01 10:00:00-05:30'", "'1677-01-01 00:00:00'", "'1677-09-22 00:00:00'", "'2262-04-12 00:00:00'", "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'9999-12-31 23:59:59-12'",
	"TIMESTAMP '2020-01-01 10:00:00.25'", "TIMESTAMP '2020-01-01'", "TIMESTAMP '2020-01-01 10:00:00+02'", "'10:00:00'", "'10:00'", "'24:00:00'", "'23:59:59.999999'", "'10:00:00.1234567'", "TIME '10:00:00.5'",
	"'f47ac10b-58cc-4372-a567-0e02b2c3d479'", "'F47AC10B58CC4372A5670E02B2C3D479'", "'{f47ac10b-58cc-4372-a567-0e02b2c3d479}'", "UUID '00000000-0000-0000-0000-000000000000'",
	`'\x00\xFF'`, `'a\x4'`, `'a\b'`, "'ä'", "'it''s'", "'a' 'b'", "X'AB'", "E'a\\nb'", "$$a$$", "1 + 1", "- 5", "+5", "--5\n1", "(3)", "/* x */ 4", "DEFAULT", "current_date", "1::BIGINT",
}

// drawLiteral gives the text of a value.
func drawLiteral(rt *rapid.T) string {
	if rapid.IntRange(0, 2).Draw(rt, "odd") == 0 {
		return rapid.SampledFrom(literalOdds).Draw(rt, "literal")
	}
	return rapid.OneOf(
		rapid.StringMatching(`-?[0-9]{1,19}`), rapid.StringMatching(`-?[0-9]{1,10}\.[0-9]{1,9}`), rapid.StringMatching(`-?[0-9]\.[0-9]{1,9}e-?[0-9]{1,2}`),
		rapid.StringMatching(`'-?[0-9]{1,10}(\.[0-9]{1,9})?'`), rapid.StringMatching(`'[a-zäß ]{0,12}'`),
		rapid.StringMatching(`'(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]'`), rapid.StringMatching(`'[012][0-9]{3}-0[1-9]-[012][0-9][ T][012][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|\+0[0-9])?'`),
		rapid.StringMatching(`'[012][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,7})?'`), rapid.StringMatching(`'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'`),
	).Draw(rt, "literal")
}

// literalParams are values of parameters.
var literalParams = []any{
	nil, true, false, int8(-5), int32(1 << 30), int64(-1), int64(1) << 40, int64(math.MaxInt64), int64(math.MinInt64), uint8(200), uint64(math.MaxUint64), uint64(7), 16777217, 1<<53 + 1,
	0.5, 0.0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1e300, 3.0, float32(0.1), float32(2), "", "12", "0.5", "text", "ä", "2020-02-29", "2020-01-01 10:00:00.5", "2020-01-01 10:00:00+01", "10:11:12",
	"f47ac10b-58cc-4372-a567-0e02b2c3d479",
	[]byte{},
	[]byte{0, 255},
	[]byte(nil),
	[16]byte{1, 2, 255},
	uuid.UUID{200},
	arrow.Date32(18000), arrow.Date32(-800000),
	duck.Decimal{Value: decimal128.FromI64(150), Precision: 5, Scale: 2},
	duck.Decimal{Value: decimal128.FromI64(-12345), Scale: 4},
	duck.Decimal{Value: decimal128.FromI64(5)},
	duck.Timestamp{Value: 1_600_000_000, Unit: arrow.Second},
	duck.Timestamp{Value: 1_600_000_000_123, Unit: arrow.Millisecond, Zoned: true},
	duck.Timestamp{Value: -1_600_000_000_123_456, Unit: arrow.Microsecond},
	duck.Timestamp{Value: 1_600_000_000_123_456_789, Unit: arrow.Nanosecond},
	duck.Timestamp{Value: math.MaxInt64, Unit: arrow.Microsecond},
	duck.TimeOfDay{Value: 3_600_000, Unit: arrow.Millisecond},
	duck.TimeOfDay{Value: 86_400, Unit: arrow.Second},
	duck.TimeOfDay{Value: 1_234_567, Unit: arrow.Nanosecond},
}

// TestLiteralInsertsOracle: an INSERT of literals and parameters stores the rows, or is refused, as if
// DuckDB had cast every value.
func TestLiteralInsertsOracle(t *testing.T) {
	w := newWorld(t, Options{})
	slow := w.engine.NewSession()
	defer slow.Close()
	require.NoError(t, slow.SetProperty(PropertyFastPath, "false"))
	for name, session := range map[string]*Session{"s1": w.session, "s2": slow} {
		w.exec("CREATE SCHEMA " + name)
		require.NoError(t, session.SetSchema(name)) // so that texts, and with them messages, are the same
	}
	insert := func(s *Session, text string, params []any) (bool, string) {
		r, err := s.Execute(t.Context(), text, params...)
		if err != nil {
			return false, strings.ReplaceAll(err.Error(), "s2.", "s1.")
		}
		defer r.Close()
		n, _ := r.UpdateCount()
		return r.Stats().FastPath, fmt.Sprint(n)
	}
	taken, runs := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.SliceOfN(rapid.SampledFrom(literalTypes), 1, 3).Draw(rt, "types")
		columns := make([]string, len(kinds))
		for i, kind := range kinds {
			columns[i] = fmt.Sprintf("c%d %s", i, kind)
		}
		for _, table := range []string{"s1.t", "s2.t"} {
			w.exec("CREATE OR REPLACE TABLE " + table + " (" + strings.Join(columns, ", ") + ")")
		}
		for range 4 {
			rows := make([]string, rapid.IntRange(1, 2).Draw(rt, "rows"))
			var params []any
			for i := range rows {
				cells := make([]string, len(kinds))
				for k := range cells {
					if rapid.IntRange(0, 3).Draw(rt, "marker") == 0 {
						cells[k], params = "?", append(params, rapid.SampledFrom(literalParams).Draw(rt, "param"))
					} else {
						cells[k] = drawLiteral(rt)
					}
				}
				rows[i] = "(" + strings.Join(cells, ", ") + ")"
			}
			text := "INSERT INTO t VALUES " + strings.Join(rows, ", ")
			fast, got := insert(w.session, text, params)
			_, want := insert(slow, text, params)
			require.Equal(rt, want, got, "%s into %v with %v", text, kinds, params)
			if runs++; fast {
				taken++
			}
		}
		require.Equal(rt, w.rows("SELECT * FROM s2.t ORDER BY ALL"), w.rows("SELECT * FROM s1.t ORDER BY ALL"), "%v", kinds)
	})
	require.Greater(t, taken, runs/50, "the short way is taken")
}

// TestLiteralInsertTaken names values of every type that take the short way, and statements that
// must not.
func TestLiteralInsertTaken(t *testing.T) {
	w := newWorld(t, Options{})
	for _, c := range []struct {
		kind, values string
		params       []any
		fast         bool
	}{
		{"BIGINT", "(1), (-2), ('3'), (NULL)", nil, true},
		{"UTINYINT", "(255)", nil, true},
		{"DOUBLE", "(1), (0.1), (-1e300), ('0.5'), (?)", []any{2.5}, true},
		{"REAL", "(1), (0.1), ('0.5'), (?)", []any{float32(0.1)}, true},
		{"DECIMAL(10,2)", "(1), (1.5), ('1.500'), (?)", []any{duck.Decimal{Value: decimal128.FromI64(15), Scale: 1}}, true},
		{"VARCHAR", "('it''s'), (12), (?)", []any{"ä"}, true},
		{"VARBINARY", `('a\x00'), (?)`, []any{[]byte{0xff}}, true},
		{"BOOLEAN", "(TRUE), (false), ('t'), (?)", []any{true}, true},
		{"DATE", "('2020-02-29'), (DATE '1960-01-01'), (?)", []any{arrow.Date32(1)}, true},
		{"TIME", "('10:00:00.5'), (?)", []any{duck.TimeOfDay{Value: 1, Unit: arrow.Second}}, true},
		{"TIMESTAMP", "('2020-01-01'), (TIMESTAMP '2020-01-01 10:00:00.5'), (?)", []any{duck.Timestamp{Value: 1, Unit: arrow.Second}}, true},
		{"TIMESTAMP(9)", "('2020-01-01 10:00:00.5')", nil, true},
		{"TIMESTAMP WITH TIME ZONE", "('2020-01-01 10:00:00+02'), (?)", []any{duck.Timestamp{Value: 1, Unit: arrow.Second, Zoned: true}}, true},
		{"UUID", "('f47ac10b-58cc-4372-a567-0e02b2c3d479'), (?)", []any{[16]byte{1}}, true},
		{"BIGINT", "($1), ($2);", []any{int64(1), int64(2)}, true},
		{"BIGINT", "($2), ($1)", []any{int64(1), int64(2)}, false},
		{"BIGINT", "(1 + 1)", nil, false},
		{"DECIMAL(10,2)", "(1.555)", nil, false},
		{"INTEGER", "(1.5)", nil, false},
	} {
		w.exec("CREATE OR REPLACE TABLE t (v " + c.kind + ")")
		r, err := w.session.Execute(t.Context(), "INSERT INTO default.t (V) VALUES "+c.values, c.params...)
		require.NoError(t, err, c.values)
		require.Equal(t, c.fast, r.Stats().FastPath, "%s into %s", c.values, c.kind)
		n, counts := r.UpdateCount()
		require.True(t, counts)
		require.EqualValues(t, strings.Count(c.values, "), (")+1, n)
		require.NoError(t, r.Close())
	}
}
