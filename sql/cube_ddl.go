package sql

import (
	"context"
	"strconv"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/token"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/startree"
)

// cubeStatement compiles the statements about cubes; nil for another statement.
func (c *compiler) cubeStatement(st *grammar.Statement) (*action, error) {
	switch {
	case st.CreateCube != nil:
		return c.createCube(st.CreateCube)
	case st.InsertCube != nil:
		return c.insertCube(st.InsertCube)
	case st.ReloadCube != nil:
		return c.reloadCube(st.ReloadCube)
	case st.DropCube != nil:
		name, err := c.table(st.DropCube.Name)
		return done(Definition, func() error {
			return c.session.engine.conn.DropCube(c.run.ctx, name, st.DropCube.IfExists)
		}), err
	case st.ShowCubes != nil && st.ShowCubes.Create != nil:
		return c.showCreateCube(*st.ShowCubes.Create)
	case st.ShowCubes != nil:
		return c.showCubes(st.ShowCubes.For)
	}
	return nil, nil
}

// createCube compiles CREATE CUBE. With WHERE the cube is filled by the same edit.
func (c *compiler) createCube(cc *grammar.CreateCube) (*action, error) {
	spec := connector.CubeSpec{}
	var err error
	if spec.Name, err = c.table(cc.Name); err != nil {
		return nil, err
	}
	if spec.Table, err = c.table(cc.Table); err != nil {
		return nil, err
	}
	for _, o := range cc.Options {
		if err := c.cubeOption(&spec, o); err != nil {
			return nil, err
		}
	}
	var region *connector.CubeRegion
	if cc.Where != nil {
		region = &connector.CubeRegion{Text: cc.Where.Value}
		if region.Constraint, err = c.exactCondition(spec.Table, cc.Where); err != nil {
			return nil, err
		}
	}
	return done(Definition, func() error {
		_, err := c.session.engine.conn.CreateCube(c.run.ctx, spec, region, connector.CreateOptions{IfNotExists: cc.IfNotExists})
		return err
	}), nil
}

// cubeOption reads one entry of WITH.
func (c *compiler) cubeOption(spec *connector.CubeSpec, o grammar.CubeProperty) error {
	switch {
	case o.Aggregations != nil:
		for _, a := range o.Aggregations.Items {
			aggregates, err := cubeAggregates(a)
			if err != nil {
				return err
			}
			spec.Aggregates = append(spec.Aggregates, aggregates...)
		}
	case o.Group != nil:
		for _, d := range o.Group.Items {
			dimension, err := cubeDimension(d)
			if err != nil {
				return err
			}
			spec.Dimensions = append(spec.Dimensions, dimension)
		}
	case o.Filter != nil:
		spec.FilterText = o.Filter.Value
		var err error
		spec.Filter, err = c.exactCondition(spec.Table, &o.Filter.Text)
		return err
	default:
		return cubeProperty(spec, o.Property)
	}
	return nil
}

// cubeFunctions are the aggregate functions of cubes by the names they have in SQL.
var cubeFunctions = map[string]startree.Func{
	"count": startree.Count, "sum": startree.Sum, "min": startree.Min, "max": startree.Max, "avg": startree.Avg, "mean": startree.Avg,
	"approx_count_distinct": startree.ApproxDistinct, "approx_distinct": startree.ApproxDistinct,
	"stddev": startree.StddevSamp, "stddev_samp": startree.StddevSamp, "stddev_pop": startree.StddevPop,
	"variance": startree.VarSamp, "var_samp": startree.VarSamp, "var_pop": startree.VarPop,
}

const cubeFunctionNames = "count, sum, min, max, avg, approx_count_distinct, stddev_samp, stddev_pop, var_samp, var_pop"

// cubeAggregates reads one entry of AGGREGATIONS. An average brings its sum and count,
// as in openLooKeng.
func cubeAggregates(a grammar.CubeAggregate) ([]connector.CubeAggregate, error) {
	name := strings.ToLower(string(a.Function))
	function, ok := cubeFunctions[name]
	switch {
	case !ok:
		return nil, connector.Errorf(connector.CodeInvalidCube, "Unsupported aggregation function '%s'. Supported functions are '%s'", a.Function, cubeFunctionNames)
	case len(a.Arguments) > 1:
		return nil, connector.Errorf(connector.CodeInvalidCube, "Too many arguments for aggregate function '%s'", a.Function)
	case (a.Distinct || a.Outside) && function != startree.Count:
		return nil, connector.Errorf(connector.CodeInvalidCube, "Distinct is currently only supported for count")
	}
	column := ""
	if len(a.Arguments) == 1 && a.Arguments[0].Column != nil {
		column = string(*a.Arguments[0].Column)
	}
	switch {
	case column == "" && function == startree.Count && !a.Distinct && !a.Outside:
		return []connector.CubeAggregate{{Func: startree.CountStar}}, nil
	case column == "":
		return nil, connector.Errorf(connector.CodeInvalidCube, "aggregate function '%s' needs a column", a.Function)
	case a.Distinct || a.Outside:
		function = startree.CountDistinct
	case function == startree.Avg:
		return []connector.CubeAggregate{{Func: startree.Avg, Column: column}, {Func: startree.Sum, Column: column}, {Func: startree.Count, Column: column}}, nil
	}
	return []connector.CubeAggregate{{Func: function, Column: column}}, nil
}

// buckets are the units of date_trunc that a dimension may have.
var buckets = map[string]startree.Bucket{
	"second": startree.BucketSecond, "minute": startree.BucketMinute, "hour": startree.BucketHour, "day": startree.BucketDay,
	"week": startree.BucketWeek, "month": startree.BucketMonth, "quarter": startree.BucketQuarter, "year": startree.BucketYear,
}

func cubeDimension(d grammar.CubeDimension) (connector.CubeDimension, error) {
	if d.Column != nil {
		return connector.CubeDimension{Column: string(*d.Column)}, nil
	}
	bucket, ok := buckets[strings.ToLower(string(*d.Unit))]
	if !strings.EqualFold(string(*d.Function), "date_trunc") || !ok {
		return connector.CubeDimension{}, connector.Errorf(connector.CodeInvalidCube,
			"%s('%s', ...) is no dimension: write a column, or date_trunc with second, minute, hour, day, week, month, quarter or year", *d.Function, *d.Unit)
	}
	return connector.CubeDimension{Column: string(*d.Argument), Bucket: bucket}, nil
}

// cubeProperty reads a property of the cube's own.
func cubeProperty(spec *connector.CubeSpec, p *grammar.Property) error {
	name := strings.ToLower(string(p.Name))
	bad := func(want string) error {
		return connector.Errorf(connector.CodeInvalidTableProperty, "cube property %s: %s is expected", name, want)
	}
	text := ""
	if p.Value.Scalar != nil {
		text = p.Value.Scalar.Text()
	}
	switch name {
	case "physical":
		spec.Physical = strings.ToLower(text)
		switch spec.Physical {
		case startree.PhysicalAuto, startree.PhysicalPlain, startree.PhysicalCuboids, startree.PhysicalStarTree:
			return nil
		}
		return bad("'auto', 'plain', 'cuboids' or 'startree'")
	case "budget_bytes":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return bad("a number of bytes")
		}
		spec.BudgetBytes = n
		return nil
	case "leaf_rows":
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return bad("a number of rows")
		}
		spec.LeafRows = n
		return nil
	case "partitioned_by":
		return connector.Errorf(connector.CodeNotSupported, "cube property partitioned_by is not supported: cells are sorted by the dimensions in the order of GROUP")
	case "transactional":
		if strings.EqualFold(text, "true") {
			return connector.Errorf(connector.CodeNotSupported, "%s is a star-tree cube with transactional = true is not supported", spec.Name)
		}
		return nil
	}
	return connector.Errorf(connector.CodeInvalidTableProperty, "cube property %s does not exist, known are: budget_bytes, leaf_rows, physical", p.Name)
}

func (c *compiler) insertCube(ic *grammar.InsertCube) (*action, error) {
	name, err := c.table(ic.Name)
	if err != nil {
		return nil, err
	}
	x, conn := c.run, c.session.engine.conn
	var region *connector.CubeRegion
	if ic.Where != nil {
		cube, err := x.hold().Cube(name)
		if err != nil {
			return nil, err
		}
		region = &connector.CubeRegion{Text: ic.Where.Value}
		if region.Constraint, err = c.exactCondition(cube.Table(), ic.Where); err != nil {
			return nil, err
		}
	}
	return &action{kind: Update, schema: noSchema, run: func([]any) (*output, error) {
		result, err := conn.InsertCube(x.ctx, name, region, ic.Overwrite)
		if err != nil {
			return nil, err
		}
		x.count(result.Cells)
		return &output{schema: noSchema, count: result.Cells, counts: true}, nil
	}}, nil
}

func (c *compiler) reloadCube(rc *grammar.ReloadCube) (*action, error) {
	name, err := c.table(rc.Name)
	return done(Update, func() error {
		err := c.session.engine.conn.ReloadCube(c.run.ctx, name)
		if rc.IfExists && connector.CodeOf(err) == connector.CodeCubeNotFound {
			return nil
		}
		return err
	}), err
}

// condition is what a WHERE clause over one table says of its rows.
func (e *Engine) condition(ctx context.Context, in settings, snapshot *connector.Snapshot, table connector.TableName, where string) (*tree.Query, error) {
	text := "SELECT 1 FROM " + token.QuoteIdent(table.Schema) + "." + token.QuoteIdent(table.Table) + " WHERE (" + where + "\n)"
	p, err := e.parsePlan(ctx, text, in, snapshot)
	if err != nil {
		return nil, err
	}
	if err := e.describe(ctx, p, snapshot); err != nil {
		return nil, err
	}
	return p.query, nil
}

// Condition gives the constraint that a condition on the rows of a table is; a condition
// that is no plain conjunction of column ranges is CUBE_REJECTED. session decides the
// schema of the table's name.
func (s *Session) Condition(ctx context.Context, table connector.TableName, where string) (*connector.CubeRegion, error) {
	in, err := s.current()
	if err != nil {
		return nil, err
	}
	x, err := s.engine.begin(ctx, where, in.schema, in.timeout)
	if err != nil {
		return nil, err
	}
	defer x.end()
	if table.Schema == "" {
		table.Schema = in.schema
	}
	c := &compiler{session: s, run: x, in: in, text: where}
	constraint, err := c.exactCondition(table, &grammar.Text{Value: where, End: len(where)})
	if err != nil {
		return nil, translate(x.reason(err), where)
	}
	return &connector.CubeRegion{Constraint: constraint, Text: where}, nil
}

// exactCondition reads a condition that has to be exact.
func (c *compiler) exactCondition(table connector.TableName, where *grammar.Text) (constraint predicate.Constraint, err error) {
	if !token.Balanced(where.Value) {
		return constraint, connector.Errorf(connector.CodeSyntaxError, "%q is no condition: its parentheses do not match, or it ends too early", where.Value)
	}
	snapshot := c.run.hold()
	if _, err := snapshot.Table(table); err != nil {
		if connector.CodeOf(err) == connector.CodeTableNotFound {
			err = connector.Errorf(connector.CodeTableNotFound, "Table '%s' does not exist", table)
		}
		return constraint, err
	}
	q, err := c.session.engine.condition(c.run.ctx, c.in, snapshot, table, where.Value)
	if err != nil {
		return constraint, hidePosition(err)
	}
	if len(q.Scans) != 1 || len(q.Params) > 0 {
		return constraint, connector.Errorf(connector.CodeCubeRejected, "Cannot support predicate '%s'", where.Value)
	}
	bound := q.Scans[0].Where.Bind(nil)
	if !bound.Exact {
		return constraint, connector.Errorf(connector.CodeCubeRejected, "Cannot support predicate '%s'", where.Value)
	}
	return bound.Constraint, nil
}

// hidePosition takes the place off a syntax error of a text that nobody wrote.
func hidePosition(err error) error {
	if s, ok := err.(*duck.SyntaxError); ok { //nolint:errorlint // only an error as the parser gives it has a place
		return connector.Errorf(connector.CodeSyntaxError, "%s", s.Message)
	}
	return err
}
