package grammar

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parse parses a statement that must be right.
func parse(t *testing.T, text string) *Statement {
	t.Helper()
	st, err := Parse(text)
	require.NoError(t, err, text)
	return st
}

func TestQueriesStayText(t *testing.T) {
	for _, q := range []string{
		"SELECT 1", "with a as (select 1) select * from a", "FROM t", "VALUES (1)", "TABLE t", "(SELECT 1)", "PIVOT t ON a USING sum(b)",
		"UNPIVOT t ON a", "SUMMARIZE t", "DESCRIBE SELECT 1", "-- comment\nselect /* x */ 'it''s'", "select 'open",
	} {
		require.Equal(t, q, parse(t, q).Query)
	}
}

func TestSchemas(t *testing.T) {
	st := parse(t, `create schema if not exists "My Schema"`)
	require.True(t, st.CreateSchema.IfNotExists)
	require.Equal(t, "My Schema", st.CreateSchema.Name.Last())
	require.False(t, parse(t, "CREATE SCHEMA memory.s").CreateSchema.IfNotExists)
	drop := parse(t, "drop schema if exists s cascade").DropSchema
	require.True(t, drop.IfExists)
	require.True(t, drop.Cascade)
	require.False(t, parse(t, "drop schema s restrict").DropSchema.Cascade)
	require.Equal(t, "memory.s", parse(t, "USE memory.s").Use.Schema.String())
}

func TestCreateTable(t *testing.T) {
	st := parse(t, `CREATE OR REPLACE TABLE IF NOT EXISTS memory.s."T ""x""" (
		a INTEGER NOT NULL DEFAULT -5 COMMENT 'it''s',
		b decimal(10, 2) DEFAULT (1 + (2)) NOT NULL, -- comment
		c TIMESTAMP(3) WITH TIME ZONE NULL,
		d DOUBLE PRECISION DEFAULT DATE '2020-01-01' COMMENT 'x',
		"e f" CHARACTER VARYING(20) PRIMARY KEY,
		g INTEGER[],
		PRIMARY KEY (a, "e f")
	) COMMENT 'table' WITH (sorted_by = ARRAY['a', 'b DESC'], "x" = ['c'], flag = true, n = -0.5, s = 'zstd', empty = ARRAY[])`)
	ct := st.CreateTable
	require.True(t, ct.OrReplace)
	require.True(t, ct.IfNotExists)
	require.Equal(t, `memory.s.T "x"`, ct.Name.String())
	require.Len(t, ct.Elements, 7)
	a := ct.Elements[0].Column
	require.EqualValues(t, "a", a.Name)
	require.Equal(t, "INTEGER", a.Type.String())
	require.True(t, a.Options[0].NotNull)
	require.Equal(t, "-5", a.Options[1].Default.Value)
	require.EqualValues(t, "it's", *a.Options[2].Comment)
	require.Equal(t, "(1 + (2))", ct.Elements[1].Column.Options[0].Default.Value)
	require.True(t, ct.Elements[1].Column.Options[1].NotNull)
	require.Equal(t, "DECIMAL(10,2)", ct.Elements[1].Column.Type.String())
	require.Equal(t, "TIMESTAMP(3) WITH TIME ZONE", ct.Elements[2].Column.Type.String())
	require.True(t, ct.Elements[2].Column.Options[0].Null)
	require.Equal(t, "DATE '2020-01-01'", ct.Elements[3].Column.Options[0].Default.Value)
	require.Equal(t, "DOUBLE PRECISION", ct.Elements[3].Column.Type.String())
	require.True(t, ct.Elements[4].Column.Options[0].PrimaryKey)
	require.True(t, ct.Elements[5].Column.Type.IsArray)
	require.Equal(t, []Name{"a", "e f"}, ct.Elements[6].PrimaryKey)
	require.EqualValues(t, "table", *ct.Comment)
	values := []string{}
	for _, p := range ct.Properties {
		if p.Value.Scalar != nil {
			values = append(values, string(p.Name)+"="+p.Value.Scalar.Text())
			continue
		}
		items := []string{}
		for _, i := range p.Value.Array.Items {
			items = append(items, i.Text())
		}
		values = append(values, string(p.Name)+"="+strings.Join(items, "+"))
	}
	require.Equal(t, []string{"sorted_by=a+b DESC", "x=c", "flag=true", "n=-0.5", "s=zstd", "empty="}, values)
	require.Nil(t, ct.As)
}

func TestCreateTableAs(t *testing.T) {
	for text, want := range map[string]struct {
		query  string
		noData bool
	}{
		"create table t as select 1":                                        {"select 1", false},
		"create table t (a, b) with (x = 1) as with q as (select 1) from q": {"with q as (select 1) from q", false},
		"create table t as select 1 with no data":                           {"select 1", true},
		"create table t as (select 1) with data":                            {"(select 1)", false},
		"create table t as select no data":                                  {"select no data", false},
	} {
		ct := parse(t, text).CreateTable
		require.Equal(t, want.query, ct.As.Value, text)
		require.Equal(t, want.noData, ct.NoData, text)
	}
}

func TestWrites(t *testing.T) {
	ins := parse(t, `insert into s.t (a, "B c") values (1, 'x'), (2, NULL)`).Insert
	require.Equal(t, []Name{"a", "B c"}, ins.Columns)
	require.Equal(t, "values (1, 'x'), (2, NULL)", ins.Query.Value)
	require.False(t, ins.Overwrite)
	ins = parse(t, "insert overwrite table t select * from u").Insert
	require.True(t, ins.Overwrite)
	require.Equal(t, "select * from u", ins.Query.Value)
	ins = parse(t, "INSERT INTO t (SELECT 1)").Insert
	require.Empty(t, ins.Columns)
	require.Equal(t, "(SELECT 1)", ins.Query.Value)
	require.Equal(t, "t", parse(t, "truncate t").Truncate.Table.String())
	require.Equal(t, "a.b", parse(t, "truncate table a.b").Truncate.Table.String())
	require.True(t, parse(t, "drop table if exists t").DropTable.IfExists)
	r := parse(t, "alter table a.b rename to c.d").Rename
	require.Equal(t, "a.b c.d", r.Name.String()+" "+r.To.String())
}

func TestOtherStatements(t *testing.T) {
	require.Equal(t, "TABLES", parse(t, "show tables from s like 'a%'").Show.What)
	require.Equal(t, "CREATE", parse(t, "show create table t").Show.What)
	require.Equal(t, "s.t", parse(t, "show stats for s.t").Show.Table.String())
	require.Equal(t, "QUERIES", parse(t, "SHOW queries").Show.What)
	require.Equal(t, "t", parse(t, "desc t").Describe.Table.String())
	ex := parse(t, "explain analyze select 1").Explain
	require.True(t, ex.Analyze)
	require.Equal(t, "select 1", ex.Statement.Value)
	set := parse(t, "set session statement_timeout = '5s'").SetSession
	require.Equal(t, "statement_timeout 5s", set.Name.String()+" "+set.Value.Text())
	require.Equal(t, "x", parse(t, "reset session x").ResetSession.Name.String())
	call := parse(t, "call memory.system.process(s.t, 'u', 5)").Call
	require.Equal(t, "memory.system.process", call.Procedure.String())
	require.Equal(t, "s.t", call.Arguments[0].Name.String())
	require.Equal(t, "u", call.Arguments[1].Scalar.Text())
	require.Empty(t, parse(t, "call system.evict()").Call.Arguments)
}

func TestAlterAndIndexes(t *testing.T) {
	a := parse(t, `alter table if exists memory.s."T" set properties sorted_by = array['a'], x = default, y = true`).Alter
	require.True(t, a.IfExists)
	require.Equal(t, "memory.s.T", a.Name.String())
	require.Len(t, a.Properties, 3)
	require.Equal(t, "default", a.Properties[1].Value.Scalar.Text())
	a = parse(t, "alter table t add column if not exists x decimal(5, 2) not null default (1 + 2) comment 'c'").Alter
	require.True(t, a.Add.IfNotExists)
	require.Equal(t, "DECIMAL(5,2)", a.Add.Column.Type.String())
	require.Equal(t, "(1 + 2)", a.Add.Column.Options[1].Default.Value)
	require.EqualValues(t, "if", parse(t, `alter table t add "if" int`).Alter.Add.Column.Name)
	require.EqualValues(t, "b c", parse(t, `alter table t drop column if exists "b c"`).Alter.Drop.Name)
	r := parse(t, "alter table s.t rename column if exists a to b").Alter.Rename
	require.True(t, r.IfExists)
	require.EqualValues(t, "ab", r.From+r.To)
	i := parse(t, "create index if not exists s.i using bloom on s.t (a, \"b\")").CreateIndex
	require.Equal(t, "s.i s.t", i.Name.String()+" "+i.Table.String())
	require.True(t, i.IfNotExists)
	require.EqualValues(t, "bloom", *i.Method)
	require.Equal(t, []Name{"a", "b"}, i.Columns)
	require.EqualValues(t, "BLOOM", *parse(t, "CREATE INDEX i ON t (a) USING BLOOM").CreateIndex.Using)
	require.True(t, parse(t, "drop index if exists i").DropIndex.IfExists)
	require.Equal(t, "t", parse(t, "analyze t").Analyze.Table.String())
	require.EqualValues(t, "it's", *parse(t, "comment on table t is 'it''s'").Comment.Text)
	require.Nil(t, parse(t, "comment on table t is null").Comment.Text)
}

func TestUnsupportedByName(t *testing.T) {
	for text, name := range map[string]string{
		"delete from t": "DELETE", "UPDATE t SET a = 1": "UPDATE", "merge into t using u on a = b": "MERGE", "begin": "BEGIN",
		"start transaction": "START TRANSACTION", "create view v as select 1": "CREATE VIEW", "create or replace view v as select 1": "CREATE OR REPLACE VIEW",
		"create unique index i on t (a)": "CREATE UNIQUE INDEX", "insert or replace into t values (1)": "INSERT OR REPLACE",
		"alter table t alter column x type int": "ALTER TABLE ALTER", "alter table if exists s.t set authorization x": "ALTER TABLE SET AUTHORIZATION",
		"comment on column t.a is 'x'":         "COMMENT ON COLUMN",
		"insert into t values (1) returning a": "INSERT ... RETURNING", "insert into t select 1 on conflict do nothing": "INSERT ... ON CONFLICT", "insert into t default values": "INSERT ... DEFAULT VALUES",
		"copy t to 'x'": "COPY", "attach 'x'": "ATTACH", "pragma version": "PRAGMA",
		"create temporary table t (a int)": "CREATE TEMPORARY", "alter schema a rename to b": "ALTER SCHEMA",
	} {
		_, err := Parse(text)
		var unsupported *UnsupportedError
		require.ErrorAs(t, err, &unsupported, text)
		require.Equal(t, name, unsupported.Statement, text)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		text, message string
		offset        int
	}{
		{"", "the statement is empty", 0},
		{"  -- nothing", "the statement is empty", 0},
		{"selct 1", `no statement begins with "SELCT"`, 0},
		{"create table t (a int", "unexpected end of the statement, expected )", 21},
		{"create tabel t", "unexpected tabel, expected TABLE", 7},
		{"create table t", "expected column definitions or AS query", 14},
		{"create table t (a 'x')", "unexpected 'x'", 18},
		{"drop table", "unexpected end of the statement, expected a name", 10},
		{"drop table 'x'", "unexpected 'x', expected a name", 11},
		{"drop table a b", "unexpected b", 13},
		{"insert into t", "unexpected end of the statement", 13},
		{"show foo", "unexpected foo, expected one of: SCHEMAS, TABLES", 5},
		{"set x = 1", "unexpected x, expected SESSION", 4},
		{"create table t (a int) with (x = )", "unexpected ), expected", 33},
		{"create table t (a int default )", "expected a constant after DEFAULT", 30},
		{"truncate table 'open", "unterminated", 15},
		{"show jobs like 'x'", "SHOW JOBS takes neither FROM nor LIKE", 0},
	} {
		_, err := Parse(c.text)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, c.text)
		require.Contains(t, syntax.Message, c.message, c.text)
		require.Equal(t, c.offset, syntax.Offset, c.text)
	}
}

// FuzzParse: no text makes the parser panic, and what it says about places lies
// in the text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"create table t (a decimal(10,2) default -1 not null) with (sorted_by = array['a'])", "insert into t (a) values (1)", "show tables like '%'",
		"explain analyze select 1", "call system.process(t)", "alter table t add column a int default 1", "create index i on t (a) using bloom", "alter table t rename to u", "create table t as select 1 with no data", "$$ x", "/* /* */", `"`, "E'\\",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			return
		}
		st, err := Parse(text)
		var syntax *SyntaxError
		if errors.As(err, &syntax) {
			require.GreaterOrEqual(t, syntax.Offset, 0)
			require.LessOrEqual(t, syntax.Offset, len(text))
		}
		if err == nil {
			require.NotNil(t, st)
		}
	})
}
