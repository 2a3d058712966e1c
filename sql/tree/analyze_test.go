package tree_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/tree"
)

var errNoTable = errors.New("no such table")

// resolve knows the tables a, b, c of schema s1 and a of schema s2, all with
// INTEGER columns id, x and one of their own name; b has a BIGINT big too.
func resolve(name tree.Name, _ int) (*tree.Table, error) {
	schema := name.Schema
	if schema == "" {
		schema = "s1"
	}
	table := strings.ToLower(name.Table)
	if schema != "s1" && schema != "s2" || !strings.Contains("abc", table) || schema == "s2" && table != "a" {
		return nil, errNoTable
	}
	t := &tree.Table{Schema: schema, Name: table}
	for i, c := range []string{"id", "x", "only_" + table} {
		t.Columns = append(t.Columns, constraint.Column{Index: i, Name: c, Type: arrow.PrimitiveTypes.Int32})
	}
	if table == "b" {
		t.Columns = append(t.Columns, constraint.Column{Index: 3, Name: "big", Type: arrow.PrimitiveTypes.Int64})
	}
	return t, nil
}

func open(t *testing.T) *duck.DB {
	db, err := duck.Open(duck.Options{Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// TestPushdown lists for each query what each scan may leave out.
func TestPushdown(t *testing.T) {
	db := open(t)
	for query, want := range map[string]string{
		`SELECT * FROM a WHERE id = 5`:                                                                                       "a: id in {5}",
		`SELECT * FROM s1.a AS q(k, v) WHERE k = 5 AND v = 6 AND x = 7`:                                                      "q: id in {5} and x in {6}",
		`SELECT * FROM a, b WHERE a.id = 5 AND b.id = 6 AND x = 7`:                                                           "a: id in {5}; b: id in {6}",
		`SELECT * FROM a, b WHERE only_a = 5 AND only_b = 6`:                                                                 "a: only_a in {5}; b: only_b in {6}",
		`SELECT * FROM a JOIN b ON a.id = b.id AND a.x = 1 WHERE b.x = 2`:                                                    "a: x in {1}; b: x in {2}",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id AND a.x = 1 AND b.x = 3 WHERE a.id = 2 AND b.id = 4`:                     "a: id in {2}; b: id in {2} and x in {3}",
		`SELECT * FROM a RIGHT JOIN b ON a.id = b.id WHERE a.id = 2 AND b.id = 4`:                                            "a: id in {4}; b: id in {4}",
		`SELECT * FROM a FULL JOIN b ON a.id = b.id WHERE a.id = 2 AND b.id = 4`:                                             "a: true; b: true",
		`SELECT * FROM (a LEFT JOIN b ON a.id = b.id) JOIN c ON c.id = 7 AND a.x = 8 WHERE c.x = 9`:                          "a: x in {8}; b: true; c: id in {7} and x in {9}",
		`SELECT * FROM a LEFT JOIN (b JOIN c ON b.x = 1 AND c.x = 2) ON a.id = b.id WHERE b.id = 3`:                          "a: true; b: x in {1}; c: x in {2}",
		`SELECT * FROM a SEMI JOIN b ON a.id = b.id AND b.x = 1 WHERE a.x = 2`:                                               "a: x in {2}; b: x in {1}",
		`SELECT * FROM a ANTI JOIN b ON a.id = b.id AND a.x = 1 WHERE a.x = 2`:                                               "a: x in {2}; b: true",
		`SELECT * FROM a ASOF JOIN b ON a.id >= b.id WHERE a.x = 1 AND b.x = 2`:                                              "a: x in {1}; b: true",
		`SELECT * FROM a POSITIONAL JOIN b WHERE a.x = 1 AND b.x = 2`:                                                        "a: true; b: true",
		`SELECT * FROM a JOIN b USING (id) WHERE id = 5 AND only_a = 6`:                                                      "a: id in {5} and only_a in {6}; b: id in {5}",
		`SELECT * FROM a NATURAL JOIN b WHERE only_a = 5 AND a.id = 6`:                                                       "a: id in {6} and only_a in {5}; b: id in {6}",
		`SELECT * FROM a TABLESAMPLE 10% WHERE id = 5`:                                                                       "a: true",
		`SELECT * FROM a WHERE id = 5 USING SAMPLE 10 ROWS`:                                                                  "a: true",
		`SELECT id FROM a GROUP BY id HAVING id = 5`:                                                                         "a: true",
		`SELECT id, row_number() OVER () AS r FROM a QUALIFY id = 5`:                                                         "a: true",
		`SELECT * FROM (SELECT * FROM a) q WHERE q.id = 5`:                                                                   "a: true",
		`SELECT * FROM (SELECT * FROM a WHERE id = 5 LIMIT 3) q WHERE q.x = 5`:                                               "a: id in {5}",
		`SELECT id + 1 AS id FROM a WHERE id = 5`:                                                                            "a: id in {5}",
		`SELECT id + 1 AS k FROM a WHERE k = 5`:                                                                              "a: true",
		`SELECT * FROM a WHERE x IN (SELECT x FROM b WHERE b.id = a.id AND only_b = 2) AND a.id = 1`:                         "a: id in {1}; b: only_b in {2}",
		`SELECT * FROM a WHERE id = 1 OR EXISTS (SELECT 1 FROM b)`:                                                           "a: true; b: true",
		`SELECT * FROM a q, a r WHERE q.id = 1 AND r.id = 2 AND x = 3`:                                                       "q: id in {1}; r: id in {2}",
		`SELECT * FROM s1.a, s2.a WHERE s1.a.id = 1 AND memory.s2.a.id = 2`:                                                  "s1.a: id in {1}; s2.a: id in {2}",
		`SELECT * FROM a WHERE id = 1 UNION ALL SELECT * FROM a WHERE id = 2`:                                                "a: id in {1}; a: id in {2}",
		`WITH a AS (SELECT * FROM a WHERE id = 1) SELECT * FROM a WHERE id = 2`:                                              "a: id in {1}",
		`WITH q AS (SELECT * FROM a WHERE id = 1), a AS (SELECT 1 AS id) SELECT * FROM a, q`:                                 "a: id in {1}",
		`WITH RECURSIVE a AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM a WHERE id < 3) SELECT * FROM a, b WHERE b.id = 4`: "b: id in {4}",
		`SELECT * FROM a WHERE random() < 0.5 AND id = 5`:                                                                    "a: id in {5}",
		`SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.id = a.id AND b.x = 2) l WHERE a.x = 1`:                           "a: x in {1}; b: x in {2}",
		`SELECT * FROM range(3) r(id), a WHERE a.id = 1 AND only_a = 2`:                                                      "a: id in {1} and only_a in {2}",
		`PIVOT a ON x IN (1, 2) USING sum(id)`:                                                                               "a: true",
		`SELECT * FROM a JOIN b ON a.x = b.id WHERE a.x = 5`:                                                                 "a: x in {5}; b: id in {5}",
		`SELECT * FROM a, b, c WHERE a.id = b.x AND c.id = b.x AND c.id > 7`:                                                 "a: id in {[8,∞)}; b: x in {[8,∞)}; c: id in {[8,∞)}",
		`SELECT * FROM a, b WHERE a.id IS NOT DISTINCT FROM b.id AND b.id IS NULL`:                                           "a: id in {NULL}; b: id in {NULL}",
		`SELECT * FROM a, b WHERE a.id = b.id AND (a.id = 1 OR b.id = 2)`:                                                    "a: id in {[1,2]}; b: id in {[1,2]}",
		`SELECT * FROM a, b WHERE a.id = b.big AND a.id = 1`:                                                                 "a: id in {1}; b: true",
		`SELECT * FROM a, b WHERE a.id = b.id + 1 AND a.id = 1`:                                                              "a: id in {1}; b: true",
		`SELECT * FROM a, b WHERE (a.id = b.id OR a.x = 3) AND a.id = 1`:                                                     "a: id in {1}; b: true",
		`SELECT * FROM a, b WHERE NOT (a.id <> b.id) AND a.id = 1`:                                                           "a: id in {1}; b: id in {1}",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id AND b.x = 3`:                                                             "a: true; b: x in {3}",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id AND a.id = 3`:                                                            "a: true; b: id in {3}",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL AND a.id = 3`:                                         "a: id in {3}; b: id in {3}",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id WHERE b.x IS NULL`:                                                       "a: true; b: true",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id WHERE a.x = 1 OR b.x = 2`:                                                "a: true; b: true",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.id JOIN c ON b.id = c.id WHERE a.id = 3 AND b.id = 4`:                       "a: id in {3}; b: id in {3}; c: id in {4}",
		`SELECT * FROM a LEFT JOIN b USING (id) WHERE id = 3`:                                                                "a: id in {3}; b: id in {3}",
		`SELECT * FROM a RIGHT JOIN b USING (id) WHERE id = 3`:                                                               "a: id in {3}; b: id in {3}",
		`SELECT * FROM a FULL JOIN b USING (id) WHERE id = 3`:                                                                "a: true; b: true",
		`SELECT * FROM a JOIN b USING (id) JOIN c USING (id) WHERE id = 3`:                                                   "a: id in {3}; b: id in {3}; c: id in {3}",
		`SELECT * FROM (a LEFT JOIN b USING (id)) JOIN c USING (id) WHERE b.id IS NULL AND c.x = 1`:                          "a: true; b: true; c: x in {1}",
		`SELECT * FROM a JOIN (SELECT 1 AS id) q USING (id) WHERE id = 3`:                                                    "a: true",
		`SELECT * FROM a NATURAL LEFT JOIN b WHERE id = 3 AND only_b = 4`:                                                    "a: id in {3}; b: id in {3}",
		`SELECT * FROM a ANTI JOIN b ON a.id = b.id AND b.x = 4 WHERE a.id = 3`:                                              "a: id in {3}; b: id in {3} and x in {4}",
		`SELECT * FROM a SEMI JOIN b USING (id) WHERE a.id = 3`:                                                              "a: id in {3}; b: id in {3}",
		`SELECT * FROM a, b TABLESAMPLE 50% WHERE a.id = b.id AND a.id = 1`:                                                  "a: id in {1}; b: true",
		`SELECT * FROM a JOIN b ON a.id = b.id AND a.id = (SELECT 1) AND b.id < 3`:                                           "a: id in {(-∞,2]}; b: id in {(-∞,2]}",
		`SELECT * FROM s1.a JOIN b ON s1.a.id = b.id WHERE s1.a.id = 4`:                                                      "a: id in {4}; b: id in {4}",
		`SELECT * FROM a FULL JOIN b ON a.id = b.id AND a.id = 3`:                                                            "a: true; b: true",
		`SELECT * FROM (a CROSS JOIN b) LEFT JOIN c ON c.id = b.id WHERE a.id = b.id AND a.id = 9`:                           "a: id in {9}; b: id in {9}; c: id in {9}",
		`SELECT 1`: "",
	} {
		parsed, err := db.Parse(context.Background(), query)
		require.NoError(t, err, query)
		q, err := tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
		require.NoError(t, err, query)
		var got []string
		for _, s := range q.Scans {
			got = append(got, s.Alias+": "+s.Where.Bind(nil).Constraint.String())
		}
		assert.Equal(t, want, strings.Join(got, "; "), query)
		text, err := db.Unparse(context.Background(), q.JSON)
		require.NoError(t, err, query)
		require.Equal(t, len(q.Scans), strings.Count(text, "memconn_scan('"), text)
	}
}

// TestLinks lists which scans may be narrowed by which: build.column > probe.column.
func TestLinks(t *testing.T) {
	db := open(t)
	for query, want := range map[string]string{
		`SELECT * FROM a, b WHERE a.id = b.x`:                                        "b.x > a.id; a.id > b.x",
		`SELECT * FROM a, b WHERE a.id = b.big`:                                      "",
		`SELECT * FROM a JOIN b USING (id)`:                                          "b.id > a.id; a.id > b.id",
		`SELECT * FROM a LEFT JOIN b ON a.id = b.x`:                                  "a.id > b.x",
		`SELECT * FROM a RIGHT JOIN b ON a.id = b.x`:                                 "b.x > a.id",
		`SELECT * FROM a FULL JOIN b ON a.id = b.x`:                                  "",
		`SELECT * FROM a ANTI JOIN b ON a.id = b.x`:                                  "a.id > b.x",
		`SELECT * FROM a SEMI JOIN b ON a.id = b.x`:                                  "b.x > a.id; a.id > b.x",
		`SELECT * FROM a WHERE id IN (SELECT x FROM b)`:                              "b.x > a.id",
		`SELECT * FROM a WHERE id IN (SELECT b.x FROM b JOIN c ON b.id = c.only_c)`:  "c.only_c > b.id; b.id > c.only_c; b.x > a.id",
		`SELECT * FROM a WHERE id IN (SELECT x FROM b UNION SELECT x FROM c)`:        "",
		`SELECT * FROM a WHERE id IN (SELECT x + 1 FROM b)`:                          "",
		`SELECT * FROM a WHERE id IN (SELECT max(x) FROM b)`:                         "",
		`SELECT * FROM a WHERE id NOT IN (SELECT x FROM b)`:                          "",
		`SELECT * FROM a WHERE id > ANY (SELECT x FROM b)`:                           "",
		`SELECT * FROM a WHERE id IN (SELECT x FROM b) OR x = 3`:                     "",
		`SELECT * FROM a LEFT JOIN c ON a.id = c.id WHERE c.id IN (SELECT x FROM b)`: "a.id > c.id",
		`SELECT * FROM a WHERE (SELECT id FROM b LIMIT 1) IN (SELECT x FROM c)`:      "",
		`SELECT * FROM a WHERE id IN (SELECT q.x FROM (SELECT id AS x FROM b) q)`:    "",
		`SELECT * FROM a TABLESAMPLE 10% WHERE id IN (SELECT x FROM b)`:              "",
		`SELECT * FROM a, b TABLESAMPLE 10% WHERE a.id = b.id`:                       "b.id > a.id",
		`WITH b AS (SELECT 1 AS x) SELECT * FROM a, b WHERE a.id = b.x`:              "",
		`SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.id = a.id) l`:             "",
	} {
		parsed, err := db.Parse(context.Background(), query)
		require.NoError(t, err, query)
		q, err := tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
		require.NoError(t, err, query)
		var got []string
		for _, l := range q.Links {
			got = append(got, q.Scans[l.Build].Alias+"."+l.BuildColumn.Name+" > "+q.Scans[l.Probe].Alias+"."+l.ProbeColumn.Name)
		}
		assert.Equal(t, want, strings.Join(got, "; "), query)
	}
}

func TestParameters(t *testing.T) {
	db := open(t)
	parsed, err := db.Parse(context.Background(), `SELECT $2 FROM a WHERE id = $10 AND x = $1`)
	require.NoError(t, err)
	q, err := tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "10"}, q.Params)
	refs := q.Scans[0].Where.Refs()
	require.Len(t, refs, 2)
	require.Equal(t, "10", refs[0].Param)
	bound := q.Scans[0].Where.Bind([]constraint.Literal{constraint.Int(3), {}})
	require.False(t, bound.Exact, "one value is unknown")
	id, ok := bound.Constraint.Domain("id")
	require.True(t, ok)
	require.Equal(t, "{3}", id.String())
}

func TestRefused(t *testing.T) {
	db := open(t)
	for query, want := range map[string]string{
		`SELECT * FROM nope`:                       "no such table",
		`SELECT * FROM a, nope`:                    "no such table",
		`SELECT * FROM a AT (VERSION => 3)`:        "AT (time travel) is not supported",
		`SELECT * FROM memconn_scan('0')`:          "a call of memconn_scan is not supported",
		`SELECT * FROM a, "MEMCONN_SCAN"('0')`:     "a call of memconn_scan is not supported",
		`SELECT * FROM (SHOW TABLES)`:              "SHOW inside a query is not supported",
		`SELECT 1 WHERE 1 IN (SELECT id FROM zzz)`: "no such table",
	} {
		parsed, err := db.Parse(context.Background(), query)
		require.NoError(t, err, query)
		_, err = tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
		require.EqualError(t, err, want, query)
	}
	_, err := tree.Analyze([]byte(`{"statements":[]}`), duck.ScanFunction, tree.Options{Resolve: resolve})
	require.Error(t, err)
	_, err = tree.Analyze([]byte(`{`), duck.ScanFunction, tree.Options{Resolve: resolve})
	require.Error(t, err)
}

// FuzzAnalyze: trees of any text neither panic nor lose a table.
func FuzzAnalyze(f *testing.F) {
	for _, seed := range []string{`SELECT * FROM a WHERE id = 5`, `WITH a AS (SELECT * FROM a) SELECT * FROM a JOIN b USING (id)`, `VALUES (1, DEFAULT)`, `FROM a PIVOT (sum(x) FOR id IN (1))`} {
		f.Add(seed)
	}
	db, err := duck.Open(duck.Options{Threads: 1})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	f.Fuzz(func(t *testing.T, query string) {
		parsed, err := db.Parse(context.Background(), query)
		if err != nil {
			return
		}
		q, err := tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
		if err != nil {
			return
		}
		for _, s := range q.Scans {
			_ = s.Where.Bind(nil).Constraint.String()
		}
		_ = q.Values()
		_ = q.Project([]tree.Target{{Name: "x", Type: "DECIMAL", Width: 5, Scale: 2}})
	})
}
