package wire

import (
	"github.com/memconn/memconn/connector"
)

// maxAggregationColumns bounds the columns of an aggregation's result.
const maxAggregationColumns = 1000

// Aggregation is the JSON of a scan request's aggregation: one row for each group in place of the table's rows.
type Aggregation struct {
	GroupBy    []GroupKey  `json:"groupBy"`    // none: one row for all rows
	Aggregates []Aggregate `json:"aggregates"` // none: the different groups
}

// GroupKey is a column to group by, or the time bucket of its values.
type GroupKey struct {
	Column string `json:"column"`
	Bucket string `json:"bucket"`
}

// Aggregate is one aggregate function; count_star has no column.
type Aggregate struct {
	Func   string `json:"func"`
	Column string `json:"column"`
}

// check refuses an aggregation that can't be meant.
func (a *Aggregation) check(columns []string) error {
	n := len(a.GroupBy) + len(a.Aggregates)
	switch {
	case columns != nil:
		return Invalid("the scan request has columns and an aggregation: the aggregation says by itself which columns it gives")
	case n == 0:
		return Invalid("the aggregation has neither groupBy nor aggregates")
	case n > maxAggregationColumns:
		return Invalid("the aggregation has %d columns, more than %d", n, maxAggregationColumns)
	}
	return nil
}

// BindAggregation resolves a request with an aggregation against a snapshot, as Bind does one without.
func (r ScanRequest) BindAggregation(s *connector.Snapshot) (connector.AggregationRequest, error) {
	scan, err := r.Bind(s)
	if err != nil {
		return connector.AggregationRequest{}, err
	}
	out := connector.AggregationRequest{Table: scan.Table, Constraint: scan.Constraint}
	for _, k := range r.Aggregation.GroupBy {
		out.GroupBy = append(out.GroupBy, connector.GroupKey(k))
	}
	for _, a := range r.Aggregation.Aggregates {
		out.Aggregates = append(out.Aggregates, connector.NamedAggregate(a))
	}
	return out, nil
}
