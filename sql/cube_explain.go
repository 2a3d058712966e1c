package sql

import (
	"fmt"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
)

// cubeExplanation is what EXPLAIN tells of cubes.
type cubeExplanation struct {
	lines []string
	// answered are the handles of the scans that are not done because of a cube.
	answered map[string]bool
	// direct says that a cube's groups are the whole result.
	direct bool
}

// explainCubes says for every SELECT that cubes might answer which one does, or why
// none does. The sources are those that were read, if the statement ran.
func (x *execution) explainCubes(p *plan, in settings, snapshot *connector.Snapshot, params map[string]constraint.Literal, sources []*source) (cubeExplanation, error) {
	e := cubeExplanation{answered: map[string]bool{}}
	if p.cubes == nil {
		return e, nil
	}
	if !in.cubes {
		e.lines = []string{"  cubes: not used: the session property enable_cubes is false"}
		return e, nil
	}
	all, err := x.pickCubes(p, in, snapshot, params, sources)
	if err != nil {
		return e, err
	}
	if why := p.cubes.refused(picksOf(all)); why != "" {
		e.lines = []string{"  cubes: not used: " + why}
		return e, nil
	}
	for _, v := range all {
		if v.pick != nil {
			e.answered[v.node.Scan.Handle] = true
			e.direct = e.direct || v.pick.choice.Finished && v.node.Direct != nil
		}
		e.lines = append(e.lines, v.lines()...)
	}
	return e, nil
}

// lines describes one SELECT.
func (v *cubeVerdicts) lines() []string {
	lines := []string{"  Groups of " + v.node.table.name.String()}
	if v.verdicts == nil {
		return append(lines, "    cubes: not used: "+v.reason)
	}
	for _, verdict := range v.verdicts {
		if verdict.Reason != "" {
			lines = append(lines, fmt.Sprintf("    cube %s: not used: %s", verdict.Cube, verdict.Reason))
			continue
		}
		lines = append(lines, fmt.Sprintf("    cube: %s (cells %d, base rows %d)", verdict.Cube, verdict.Cells, verdict.BaseRows))
	}
	if v.pick != nil {
		form := "finished"
		if !v.pick.choice.Finished {
			form = "partial, grouped again"
		}
		lines = append(lines, fmt.Sprintf("    filter: %s", v.pick.filter), "    groups: "+form)
		for _, by := range v.pick.narrowedBy {
			lines = append(lines, "    narrowed: "+by)
		}
	}
	return lines
}
