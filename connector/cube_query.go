package connector

import (
	"context"
	"errors"

	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// CubeRequest is a grouped aggregate over one table.
type CubeRequest struct {
	Table TableName
	// Query is in terms of the table's columns.
	Query *startree.Query
	// Cube answers; nil: the table's rows alone. It comes from ChooseCube of the same
	// snapshot and query.
	Cube      *CubeChoice
	NoIndexes bool
	// AnyCube makes ChooseCube take a cube that can answer even if the table's own rows
	// are fewer.
	AnyCube bool
}

// CubeChoice is how a cube answers one query. It belongs to its snapshot and query.
type CubeChoice struct {
	cube     *Cube
	coverage *startree.Coverage
}

// Name names the cube.
func (c *CubeChoice) Name() TableName { return c.cube.Name() }

// Cells bounds the cells that will be read, BaseRows the rows of the table.
func (c *CubeChoice) Cells() int64 { return c.coverage.EstimatedCells() }

// BaseRows bounds the rows of the table that will be read.
func (c *CubeChoice) BaseRows() int64 { return c.coverage.EstimatedBaseRows() }

// CubeVerdict says of one cube how it stands to a query.
type CubeVerdict struct {
	Cube TableName
	// Reason is why the cube is not used; "" for the one that is.
	Reason string
	// Cells and BaseRows are what an answer would read; zeros when it cannot answer.
	Cells, BaseRows int64
}

// HasCubes says whether a table has cubes, at almost no cost.
func (s *Snapshot) HasCubes(t *Table) bool { return len(t.state.Def.Barriers) > 0 }

// ChooseCube finds the cube that answers a query by reading the least; nil when none can,
// or when the table's rows are fewer. The verdicts speak of every cube of the table.
func (s *Snapshot) ChooseCube(ctx context.Context, r CubeRequest) (*CubeChoice, []CubeVerdict, error) {
	t, filters, err := s.resolve(r.Table, r.Query.Filter)
	if err != nil {
		return nil, nil, err
	}
	var verdicts []CubeVerdict
	var best *CubeChoice
	winner := -1
	for _, cube := range s.cubesOf(t) {
		choice, reason := s.tryCube(t, cube, r.Query)
		verdict := CubeVerdict{Cube: cube.Name(), Reason: reason}
		if choice != nil {
			verdict.Cells, verdict.BaseRows = choice.Cells(), choice.BaseRows()
			verdict.Reason = "another reads less"
			if best == nil || choice.coverage.EstimatedRows() < best.coverage.EstimatedRows() {
				best, winner = choice, len(verdicts)
			}
		}
		verdicts = append(verdicts, verdict)
	}
	if best == nil {
		return nil, verdicts, ctx.Err()
	}
	rows, err := s.estimate(t, filters)
	if err != nil {
		return nil, nil, err
	}
	if best.coverage.EstimatedRows() > rows && !r.AnyCube {
		verdicts[winner].Reason = "the table's own rows are fewer"
		return nil, verdicts, ctx.Err()
	}
	verdicts[winner].Reason = ""
	return best, verdicts, ctx.Err()
}

// tryCube asks one cube; a nil choice comes with the reason.
func (s *Snapshot) tryCube(t *catalog.TableState, cube *Cube, q *startree.Query) (*CubeChoice, string) {
	switch {
	case cube.err != nil:
		return nil, cube.err.Error()
	case len(cube.manifest.Segments) == 0:
		return nil, "nothing was inserted into it"
	}
	if reason := cube.manifest.Match(t.Def, q); reason != "" {
		return nil, reason
	}
	coverage, reason := cube.manifest.Cover(startree.CoverRequest{
		Env: s.c.env, Base: t.Def, State: cube.state.Def, BaseParts: t.Parts, StateParts: cube.state.Parts, Query: q,
	})
	if reason != "" {
		return nil, reason
	}
	if coverage.EstimatedCells() == 0 && coverage.EstimatedBaseRows() > 0 {
		return nil, "it has no cells for the query's rows yet"
	}
	return &CubeChoice{cube: cube, coverage: coverage}, ""
}

// estimate bounds the rows that a scan with filters would read.
func (s *Snapshot) estimate(t *catalog.TableState, filters []table.Filter) (int64, error) {
	if len(filters) == 0 {
		return t.Rows, nil
	}
	scan, err := table.NewScan(s.c.env, t.Def, t.Parts, table.ScanRequest{Columns: []table.ColumnID{}, Filters: filters, Limit: -1})
	if err != nil {
		return 0, readError(err, "scan", nameOf(t.Def).String())
	}
	defer scan.Close()
	return scan.EstimatedRows(), nil
}

// AggregateGroups answers a grouped aggregate, from a cube where the request names one.
// The caller closes the rows. Errors are those of Scan, MEMORY_LIMIT_EXCEEDED when
// the groups outgrow the memory, QUERY_ERROR for a sum beyond 38 digits, NOT_SUPPORTED
// for an aggregate without a partial form.
func (s *Snapshot) AggregateGroups(ctx context.Context, r CubeRequest) (*startree.Rows, error) {
	t, _, err := s.resolve(r.Table, r.Query.Filter)
	if err != nil {
		return nil, err
	}
	request := startree.RunRequest{Env: s.c.env, Base: t.Def, BaseParts: t.Parts, Query: r.Query, NoIndexes: r.NoIndexes}
	if r.Cube != nil {
		request.Coverage = r.Cube.coverage
	}
	rows, err := startree.Run(ctx, request)
	switch {
	case err == nil:
		return rows, nil
	case errors.Is(err, startree.ErrOverflow):
		return nil, Errorf(CodeQueryError, "aggregate table %s: %w", nameOf(t.Def), err)
	case errors.Is(err, startree.ErrNotPartial):
		return nil, Errorf(CodeNotSupported, "aggregate table %s: %w", nameOf(t.Def), err)
	}
	return nil, readError(err, "aggregate", nameOf(t.Def).String())
}
