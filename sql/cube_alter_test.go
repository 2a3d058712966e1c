package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestCubeColumnsAndAlter drops and renames the columns that a cube is made of.
func TestCubeColumnsAndAlter(t *testing.T) {
	w := newCubeWorld(t)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (b, date_trunc('day', ts)), FILTER = (f = true)) WHERE b = 'b1' AND "ts" >= DATE '2024-01-01'`)
	for _, column := range []string{"b", "ts", "x", "f"} {
		require.Contains(t, w.fails(connector.CodeInvalidArgument, "ALTER TABLE t DROP COLUMN "+column), "cube default.c uses it")
	}
	w.exec(`ALTER TABLE t DROP COLUMN y`)
	w.exec(`ALTER TABLE t ADD COLUMN y BIGINT`)
	w.exec(`ALTER TABLE t RENAME COLUMN x TO "sum of x"`)
	w.exec(`ALTER TABLE t RENAME COLUMN b TO "the ""b"""`)
	w.exec(`ALTER TABLE t RENAME COLUMN f TO x`)
	w.exec(`ALTER TABLE t RENAME COLUMN ts TO date`)
	w.exec(`ALTER TABLE t RENAME COLUMN date TO b`)
	require.Equal(t, "default.c", w.both(`SELECT "the ""b""", sum("sum of x") FROM t WHERE x AND "the ""b""" = 'b1' GROUP BY ALL ORDER BY 1`))
	create := w.rows(`SHOW CREATE CUBE c`)[0]
	w.exec(`DROP CUBE c`)
	w.exec(create)
	require.Equal(t, "default.c", w.both(`SELECT "the ""b""", sum("sum of x") FROM t WHERE x AND "the ""b""" = 'b1' GROUP BY ALL ORDER BY 1`), create)
	w.exec(`DROP CUBE c`)
	w.exec(`ALTER TABLE t DROP COLUMN x`)
}
