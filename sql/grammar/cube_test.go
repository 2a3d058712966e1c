package grammar

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCreateCube(t *testing.T) {
	st, err := Parse(`CREATE CUBE IF NOT EXISTS s.c ON memory.s.t WITH (FILTER = (f = ')' AND (g > 1)), AGGREGATIONS = (count(*), sum("A b"), count(DISTINCT y), count(1), COUNT DISTINCT(z)), GROUP = (a, date_trunc('month', ts), "B"), physical = 'plain') WHERE a = 1 AND b BETWEEN 2 AND 3`)
	require.NoError(t, err)
	c := st.CreateCube
	require.NotNil(t, c)
	require.True(t, c.IfNotExists)
	require.Equal(t, "s.c", c.Name.String())
	require.Equal(t, "memory.s.t", c.Table.String())
	require.Equal(t, "f = ')' AND (g > 1)", c.Options[0].Filter.Value)
	aggregates := c.Options[1].Aggregations.Items
	require.Len(t, aggregates, 5)
	require.True(t, aggregates[0].Arguments[0].All)
	require.EqualValues(t, "A b", *aggregates[1].Arguments[0].Column)
	require.True(t, aggregates[2].Distinct)
	require.NotNil(t, aggregates[3].Arguments[0].Number)
	require.True(t, aggregates[4].Outside)
	group := c.Options[2].Group.Items
	require.EqualValues(t, "a", *group[0].Column)
	require.EqualValues(t, "month", *group[1].Unit)
	require.EqualValues(t, "ts", *group[1].Argument)
	require.Nil(t, group[2].Function)
	require.EqualValues(t, "physical", c.Options[3].Property.Name)
	require.Equal(t, "a = 1 AND b BETWEEN 2 AND 3", c.Where.Value)

	st, err = Parse(`create cube c on t with (aggregations = (sum(x)), group = ())`)
	require.NoError(t, err)
	require.Empty(t, st.CreateCube.Options[1].Group.Items)
	require.Nil(t, st.CreateCube.Where)
}

func TestCubeStatements(t *testing.T) {
	for text, check := range map[string]func(st *Statement) bool{
		`INSERT INTO CUBE c`: func(st *Statement) bool {
			return st.InsertCube != nil && !st.InsertCube.Overwrite && st.InsertCube.Where == nil
		},
		`INSERT INTO CUBE s.c WHERE a > 1`:    func(st *Statement) bool { return st.InsertCube.Where.Value == "a > 1" },
		`INSERT OVERWRITE CUBE c WHERE a = 1`: func(st *Statement) bool { return st.InsertCube.Overwrite },
		`RELOAD CUBE c`:                       func(st *Statement) bool { return st.ReloadCube != nil },
		`DROP CUBE IF EXISTS c`:               func(st *Statement) bool { return st.DropCube.IfExists },
		`SHOW CUBES`:                          func(st *Statement) bool { return st.ShowCubes != nil && st.ShowCubes.For == nil },
		`SHOW CUBES FOR s.t`:                  func(st *Statement) bool { return st.ShowCubes.For.String() == "s.t" },
		`SHOW CREATE CUBE c`:                  func(st *Statement) bool { return st.ShowCubes.Create.String() == "c" },
		`SHOW CREATE TABLE cubes`:             func(st *Statement) bool { return st.Show.What == "CREATE" },
		`INSERT INTO cubes SELECT 1`:          func(st *Statement) bool { return st.Insert != nil },
		`INSERT INTO t SELECT * FROM cube`:    func(st *Statement) bool { return st.Insert != nil },
		`CREATE TABLE cube (a INTEGER)`:       func(st *Statement) bool { return st.CreateTable != nil },
		`INSERT INTO "cube" VALUES (1)`:       func(st *Statement) bool { return st.Insert != nil },
	} {
		st, err := Parse(text)
		require.NoError(t, err, text)
		require.True(t, check(st), text)
	}
}

func TestCubeSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*)))`:                                          "Missing property: GROUP",
		`CREATE CUBE c ON t WITH (GROUP = (a))`:                                                        "Missing property: AGGREGATIONS",
		`CREATE CUBE c ON t WITH (GROUP = (a), GROUP = (b), AGGREGATIONS = (count(*)))`:                "Duplicate property: GROUP",
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x)), GROUP = (b), AGGREGATIONS = (count(*)))`:    "Duplicate property: AGGREGATIONS",
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x)), GROUP = (b), FILTER = (a=1), FILTER=(b=2))`: "Duplicate Property: FILTER",
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (), GROUP = (b))`:                                     "unexpected )",
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x + 1)), GROUP = (b))`:                           "unexpected +",
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x)), GROUP = (b), FILTER = (a = 1`:               "unexpected",
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x)), GROUP = (b), FILTER = ())`:                  "expected a condition in FILTER",
		`CREATE CUBE c`:               "expected ON",
		`INSERT INTO CUBE c SELECT 1`: "unexpected",
		`INSERT INTO CUBE c WHERE`:    "unexpected end",
		`RELOAD TABLE c`:              "unexpected TABLE",
		`SHOW CUBES LIKE 'x'`:         "unexpected LIKE",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}
