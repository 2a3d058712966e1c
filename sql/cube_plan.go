package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/startree"
)

// cubePlan is what a plan knows of cubes: the SELECTs that they may answer, and the
// trees that were made with some of them replaced. It is shared by statements.
type cubePlan struct {
	nodes []*cubeNode

	mu struct {
		sync.Mutex
		trees map[string]cubeTree
	}
}

// cubeNode is one SELECT that a cube may answer.
type cubeNode struct {
	*tree.Aggregation
	table planTable
	scan  int // among those of the query
	// schema is the SELECT's own result; nil when it depends on parameters.
	schema *arrow.Schema
	reason string // why it cannot be answered by itself
}

// cubeTree is a whole query with some SELECTs replaced; why says that the replacement
// would have given other types.
type cubeTree struct {
	json   []byte
	params []string // identifiers of the parameters that are left
	why    string
}

// joins says whether cubes may answer for a table that is joined with others.
func (c *cubePlan) joins() bool {
	return slices.ContainsFunc(c.nodes, func(n *cubeNode) bool { return n.Join && n.reason == "" })
}

// maxCubeTrees bounds the trees that one plan keeps.
const maxCubeTrees = 32

// planCubes finds what cubes may answer. It describes each such SELECT by itself, which
// fails for one that depends on the query around it.
func (e *Engine) planCubes(ctx context.Context, p *plan, snapshot *connector.Snapshot) error {
	if !p.query.HasCubes() {
		return nil
	}
	scalar, err := e.scalarFunctions(ctx)
	if err != nil {
		return err
	}
	for _, a := range p.query.Aggregations(func(name string) bool { return scalar[name] }, e.folder(ctx)) {
		n := &cubeNode{Aggregation: a, reason: a.Reason}
		for i, s := range p.query.Scans {
			if s == a.Scan {
				n.table, n.scan = p.tables[i], i
			}
		}
		if n.reason == "" && p.schema == nil {
			n.reason = "the type of a parameter is open" // and with it what the result must be
		}
		if n.reason == "" {
			if n.schema, err = e.describeAlone(ctx, a.Original, duckSources(p.sources(snapshot))); err != nil {
				n.reason = "it depends on the query around it"
			} else {
				n.schema = p.named(n.schema)
			}
		}
		if p.cubes == nil {
			p.cubes = &cubePlan{}
			p.cubes.mu.trees = map[string]cubeTree{}
		}
		p.cubes.nodes = append(p.cubes.nodes, n)
	}
	return ctx.Err()
}

// describeAlone gives the columns of a tree.
func (e *Engine) describeAlone(ctx context.Context, tree func() ([]byte, error), sources map[string]duck.Source) (*arrow.Schema, error) {
	text, err := tree()
	if err != nil {
		return nil, err
	}
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stmt, err := conn.PrepareTree(ctx, text, sources)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	return stmt.Schema(), nil
}

// scalarFunctions gives the names of DuckDB's functions that have one value for equal
// arguments within a query and are nothing but scalar: they can be applied to groups
// as well as to rows.
func (e *Engine) scalarFunctions(ctx context.Context) (map[string]bool, error) {
	e.functions.Lock()
	defer e.functions.Unlock()
	if e.functions.scalar != nil {
		return e.functions.scalar, nil
	}
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stmt, err := conn.Prepare(ctx, `SELECT lower(function_name) FROM duckdb_functions() GROUP BY 1
		HAVING bool_and(function_type = 'scalar' AND stability IN ('CONSISTENT', 'CONSISTENT_WITHIN_QUERY'))`, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	rows, err := stmt.Execute(ctx, nil)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
			break
		}
		if err != nil {
			return nil, err
		}
		column := batch.Column(0).(*array.String)
		for i := range column.Len() {
			names[strings.Clone(column.Value(i))] = true
		}
		batch.Release()
	}
	delete(names, "unnest") // makes rows
	delete(names, "error")
	e.functions.scalar = names
	return names, nil
}

// cubePick is a cube that answers a SELECT in one execution.
type cubePick struct {
	node   *cubeNode
	choice tree.Choice
	query  *startree.Query
	cube   *connector.CubeChoice
	// filter is what WHERE says; that of the query also has the keys of joined tables that
	// narrowedBy speaks of.
	filter     predicate.Constraint
	narrowedBy []string
}

// cubeVerdicts is how the cubes of a table stand to one SELECT of a query.
type cubeVerdicts struct {
	node     *cubeNode
	pick     *cubePick // nil: the table answers
	verdicts []connector.CubeVerdict
	reason   string // why no cube was asked
}

// pickCubes chooses the cubes for one execution. The sources, if there are any, say which
// rows find partners in a join.
func (x *execution) pickCubes(p *plan, in settings, snapshot *connector.Snapshot, params map[string]constraint.Literal, sources []*source) ([]cubeVerdicts, error) {
	out := make([]cubeVerdicts, len(p.cubes.nodes))
	for i, n := range p.cubes.nodes {
		out[i] = cubeVerdicts{node: n, reason: n.reason}
		if n.reason != "" {
			continue
		}
		var own *source
		if n.Join && sources != nil {
			own = sources[n.scan]
		}
		if err := x.pickCube(&out[i], in, snapshot, params, own); err != nil {
			return nil, err
		}
	}
	onePerSelect(out, snapshot)
	return out, nil
}

// onePerSelect leaves one table of each SELECT to its cube: the groups of two would count
// each other's rows. The table with the most rows has the most to gain.
func onePerSelect(all []cubeVerdicts, snapshot *connector.Snapshot) {
	rows := func(v *cubeVerdicts) int64 {
		t, err := snapshot.Table(v.node.table.name)
		if err != nil {
			return -1
		}
		return t.Rows()
	}
	for i := range all {
		for j := range all[:i] {
			a, b := &all[j], &all[i]
			if a.pick == nil || b.pick == nil || !a.node.SameSelect(b.node.Aggregation) {
				continue
			}
			if rows(b) > rows(a) {
				a, b = b, a
			}
			b.pick, b.verdicts, b.reason = nil, nil, "the groups of "+a.node.table.name.String()+" are in the same SELECT"
		}
	}
}

// pickCube chooses the cube of one SELECT, in finished form if possible. own is the
// source of a joined table, or nil.
func (x *execution) pickCube(v *cubeVerdicts, in settings, snapshot *connector.Snapshot, params map[string]constraint.Literal, own *source) error {
	n := v.node
	filter, residual, reason := n.bind(params)
	if reason != "" {
		v.reason = reason
		return nil
	}
	for _, finished := range []bool{true, false} {
		choice := tree.Choice{Aggregation: n.Aggregation, Finished: finished, Residual: residual}
		if finished && (len(residual) > 0 || n.Finished.Reason != "") {
			continue
		}
		if choice.Form().Reason != "" {
			if v.verdicts == nil {
				v.reason = choice.Form().Reason
			}
			continue
		}
		if n.Join && len(choice.Dims()) == 0 {
			v.reason = "no column of it is compared or grouped by"
			continue
		}
		if n.schema != nil {
			for _, f := range n.schema.Fields() {
				choice.Names = append(choice.Names, f.Name)
			}
		}
		query, err := n.query(choice, filter.And(n.narrowed(choice, own)))
		if err != nil {
			v.reason = err.Error()
			continue
		}
		cube, verdicts, err := snapshot.ChooseCube(x.ctx, connector.CubeRequest{Table: n.table.name, Query: query, AnyCube: in.anyCube})
		if err != nil {
			return err
		}
		if v.verdicts == nil || cube != nil {
			v.verdicts = verdicts
		}
		if cube != nil {
			v.pick = &cubePick{node: n, choice: choice, query: query, cube: cube, filter: filter}
			if own != nil {
				v.pick.narrowedBy = own.narrowedBy
			}
			return nil
		}
	}
	return nil
}

// narrowed gives what is known of the dimensions of rows that find partners.
func (n *cubeNode) narrowed(choice tree.Choice, own *source) predicate.Constraint {
	var out predicate.Constraint
	if own == nil {
		return out
	}
	if own.narrowed.IsNone() {
		return own.narrowed
	}
	for _, d := range choice.Dims() {
		name := n.table.def.Columns[d.Index].Name
		if domain, ok := own.narrowed.Domain(name); ok && d.Unit == "" {
			out = out.And(predicate.Where(map[string]predicate.Domain{name: domain}))
		}
	}
	return out
}

// bind splits WHERE into a constraint on the rows and conditions left for the groups.
func (n *cubeNode) bind(params map[string]constraint.Literal) (filter predicate.Constraint, residual []int, reason string) {
	for i, w := range n.Where {
		bound := w.Where.Bind(fill(w.Where.Refs(), params))
		if bound.Exact {
			filter = filter.And(bound.Constraint)
			continue
		}
		if w.Reason != "" {
			return filter, nil, "a condition of WHERE is no range of columns: " + w.Reason
		}
		residual = append(residual, i)
	}
	return filter, residual, ""
}

// query gives a choice in the terms of startree.
func (n *cubeNode) query(choice tree.Choice, filter predicate.Constraint) (*startree.Query, error) {
	q := &startree.Query{Filter: filter, Partial: !choice.Finished}
	columns := n.table.def.Columns
	for _, d := range choice.Dims() {
		q.GroupBy = append(q.GroupBy, connector.NewDimension(columns[d.Index], startree.Bucket(d.Unit)))
	}
	for _, a := range choice.Form().Aggregates {
		f, ok := startree.ParseFunc(a.Function)
		if !ok {
			return nil, fmt.Errorf("BUG: aggregate %s has no function", a.Function)
		}
		aggregate := startree.Aggregate{Func: f}
		if a.Index >= 0 {
			aggregate.Column = columns[a.Index].ID
		}
		q.Aggregates = append(q.Aggregates, aggregate)
	}
	return q, nil
}

// treeKey names a set of choices of one plan.
func treeKey(picks []*cubePick, nodes []*cubeNode) string {
	var b strings.Builder
	for i, n := range nodes {
		for _, p := range picks {
			if p.node == n {
				fmt.Fprintf(&b, "%d:%t:%v;", i, p.choice.Finished, p.choice.Residual)
			}
		}
	}
	return b.String()
}

// tree gives the query with the picked SELECTs replaced. Each of them has to give what
// the original gives, to the type.
func (c *cubePlan) tree(x *execution, p *plan, picks []*cubePick, sources map[string]duck.Source) (cubeTree, error) {
	key := treeKey(picks, c.nodes)
	c.mu.Lock()
	t, ok := c.mu.trees[key]
	c.mu.Unlock()
	if ok {
		return t, nil
	}
	choices := make([]tree.Choice, len(picks))
	for i, pick := range picks {
		choices[i] = pick.choice
		schema, err := x.engine.describeAlone(x.ctx, func() ([]byte, error) { return pick.choice.Tree(duck.ScanFunction) }, sources)
		var query *duck.QueryError
		switch {
		case errors.As(err, &query):
			message, _, _ := strings.Cut(query.Message, "\n") // without a list of what is
			t.why = "its form over groups is not understood: " + message
		case err != nil:
			return t, err
		case pick.node.schema == nil || schema == nil || !sameTypes(schema, pick.node.schema):
			t.why = "its form over groups would give other types"
		}
	}
	if t.why == "" {
		var err error
		if t.json, t.params, err = p.query.Replace(choices); err != nil {
			return t, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.trees) >= maxCubeTrees {
		clear(c.mu.trees)
	}
	c.mu.trees[key] = t
	return t, nil
}

// refused gives the reason why the picked SELECTs could not be replaced when that was
// tried before; "" when they could, or nobody knows yet.
func (c *cubePlan) refused(picks []*cubePick) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.trees[treeKey(picks, c.nodes)].why
}

func sameTypes(a, b *arrow.Schema) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i, f := range a.Fields() {
		if !arrow.TypeEqual(f.Type, b.Field(i).Type) {
			return false
		}
	}
	return true
}
