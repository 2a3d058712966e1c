package constraint_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFolding lists what constant expressions become.
func TestFolding(t *testing.T) {
	o := newOracle(t)
	for where, want := range map[string]string{
		`dt <= DATE '1998-12-01' - INTERVAL '90' DAY`: `dt in {(-∞,10471]}`,
		`dt >= '1970-01-11'::DATE + 10`:               `dt in {[20,∞)}`,
		`i32 BETWEEN 2 + 3 AND 2 * 5`:                 `i32 in {[5,10]}`,
		`d9 BETWEEN 0.06 - 0.01 AND 0.06 + 0.01`:      `d9 in {[5,7]}`,
		`i64 IN (1, 1 + 1, abs(-3))`:                  `i64 in {[1,3]}`,
		`s LIKE 'a' || 'b%'`:                          `s in {["ab","ac")}`,
		`s = upper('b')`:                              `s in {"B"}`,
		`1 + 1 = 3`:                                   `false`,
		`1 + 1 = 2 AND i32 = 7`:                       `i32 in {7}`,
		`i32 = CAST('x' AS INTEGER)`:                  `true`,
		`dt = CAST('today' AS DATE)`:                  `true`,
		`ts >= now() - INTERVAL 1 DAY`:                `true`,
		`i32 = (random() * 0)::INTEGER`:               `true`,
		`CASE WHEN i32 = 5 THEN TRUE ELSE FALSE END`:  `true`,
		`s = repeat('a', 3)`:                          `true`,
		`ts < CAST(CAST('2020-01-01' AS DATE) AS TIMESTAMP) + INTERVAL '1' HOUR`: `ts in {(-∞,1577840399999999]}`,
	} {
		bound, err := o.bind(where)
		require.NoError(t, err, where)
		require.Equal(t, want, bound.Constraint.String(), where)
	}
}
