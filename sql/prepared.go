package sql

import (
	"sync/atomic"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
)

// planHandle is a prepared statement's own hold on its plan, so that running it
// again looks nothing up by text. It is safe for concurrent use.
type planHandle struct {
	held atomic.Pointer[heldPlan]
}

// heldPlan is a plan and the last version of the catalog that it was found to fit.
type heldPlan struct {
	plan *plan
	// where, if not nil, is what the WHERE clause says: the plan was made for a text with
	// other literals, and only its fast path may be taken.
	where   *constraint.Result
	version atomic.Uint64
}

// keep makes p the statement's plan.
func (h *planHandle) keep(p *plan) { h.held.Store(&heldPlan{plan: p}) }

// fits says whether the plan's tables are in the snapshot as they were. Versions
// are numbered, so that most often one comparison tells.
func (h *heldPlan) fits(snapshot *connector.Snapshot) bool {
	version := snapshot.Version()
	if h.version.Load() == version {
		return true
	}
	if !h.plan.valid(snapshot) {
		return false
	}
	h.version.Store(version)
	return true
}

// runPrepared runs the plan that a prepared statement holds. It gives nil when
// there is none, or when the tables are no longer those it was made for.
func (x *execution) runPrepared(handle *planHandle, in settings, params []any) (*output, error) {
	held := handle.held.Load()
	if held == nil {
		return nil, nil
	}
	snapshot := x.hold()
	if !held.fits(snapshot) {
		return nil, nil
	}
	if held.where == nil {
		return x.runPlan(held.plan, in, snapshot, params)
	}
	if !in.fastPath || len(params) > 0 {
		return nil, nil
	}
	return held.plan.fast.run(x, in, snapshot, *held.where)
}

// bind gives the literals of a predicate with the parameters' values in them.
func (p *plan) bind(where *constraint.Predicate, params []any) ([]constraint.Literal, error) {
	if err := p.checkCount(params); err != nil {
		return nil, err
	}
	refs := where.Refs()
	out := make([]constraint.Literal, len(refs))
	for i, r := range refs {
		out[i] = r.Literal
		if r.Param != "" {
			out[i] = constraint.Cast(p.paramLiteral(r.Param, params), r.Cast)
		}
	}
	return out, nil
}

// checkCount refuses more or fewer values than the plan has parameters.
func (p *plan) checkCount(params []any) error {
	if len(params) != len(p.params) {
		return badArgument("the statement has %d parameters, %d values were given", len(p.params), len(params))
	}
	return nil
}

// paramLiteral finds the value of a parameter by its identifier. There are few.
func (p *plan) paramLiteral(identifier string, params []any) constraint.Literal {
	out := constraint.Literal{}
	for i, value := range params {
		name := p.params[i].Name
		if named, ok := value.(duck.Named); ok {
			name, value = named.Name, named.Value
		}
		if name == identifier {
			out = paramLiteral(value)
		}
	}
	return out
}
