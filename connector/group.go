package connector

import (
	"context"
	"errors"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// GroupRequest asks for aggregates by the values of key columns.
type GroupRequest struct {
	Table      TableName
	Keys       []string
	Aggregates []AggregateSpec
	Constraint predicate.Constraint
	// MaxGroups is how many groups the caller wants at most.
	MaxGroups int
	NoIndexes bool
}

// Groups computes the aggregates of each group, in any order of groups. It gives false
// when there are more than MaxGroups. Key columns of floats are INVALID_ARGUMENT; the
// other errors are those of Scan.
func (s *Snapshot) Groups(ctx context.Context, r GroupRequest) ([]table.Group, table.ScanStats, bool, error) {
	t, filters, err := s.resolve(r.Table, r.Constraint)
	if err != nil {
		return nil, table.ScanStats{}, false, err
	}
	request := table.GroupRequest{Filters: filters, MaxGroups: r.MaxGroups, NoIndexes: r.NoIndexes}
	for _, name := range r.Keys {
		c, err := findColumn(t.Def, name)
		if err != nil {
			return nil, table.ScanStats{}, false, err
		}
		if kind, ok := predicate.KindOf(c.Type); !ok || kind == predicate.KindFloat {
			return nil, table.ScanStats{}, false, Errorf(CodeInvalidArgument, "group by column %s: its type %s is not one to group by", name, c.Type)
		}
		request.Keys = append(request.Keys, c.ID)
	}
	if request.Aggregates, err = aggregatesOf(t.Def, r.Aggregates); err != nil {
		return nil, table.ScanStats{}, false, err
	}
	groups, stats, err := table.RunGroups(ctx, s.c.env, t.Def, t.Parts, request)
	if errors.Is(err, table.ErrTooManyGroups) {
		return nil, stats, false, nil
	}
	if err != nil {
		return nil, stats, false, readError(err, "group", nameOf(t.Def).String())
	}
	return groups, stats, true, nil
}

// aggregatesOf finds the columns of aggregates.
func aggregatesOf(def *table.Definition, specs []AggregateSpec) ([]table.Aggregate, error) {
	aggregates := make([]table.Aggregate, len(specs))
	for i, a := range specs {
		aggregates[i].Func = a.Func
		if a.Func == table.CountStar {
			continue
		}
		c, err := findColumn(def, a.Column)
		if err != nil {
			return nil, err
		}
		aggregates[i].Column = c.ID
	}
	return aggregates, nil
}
