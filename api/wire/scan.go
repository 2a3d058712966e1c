package wire

import (
	"bytes"
	"encoding/json"

	"github.com/memconn/memconn/connector"
)

// ScanRequest is the JSON of POST /v1/scans and of Flight descriptors whose command begins with a brace.
type ScanRequest struct {
	Schema     string          `json:"schema"`
	Table      string          `json:"table"`
	Columns    []string        `json:"columns"`    // null or absent: all
	Constraint json.RawMessage `json:"constraint"` // see ParseConstraint
	Limit      *int64          `json:"limit"`      // absent: none; with an aggregation it counts groups
	// Aggregation asks for groups in place of rows; absent: rows.
	Aggregation *Aggregation `json:"aggregation"`
}

// ParseScanRequest decodes a scan request strictly.
func ParseScanRequest(raw []byte) (ScanRequest, error) {
	var r ScanRequest
	if err := DecodeStrict(bytes.NewReader(raw), &r); err != nil {
		return r, err
	}
	return r, r.Check()
}

// Check refuses a request that can't be meant.
func (r ScanRequest) Check() error {
	if r.Table == "" {
		return Invalid("the scan request names no table")
	}
	if r.Limit != nil && *r.Limit < 0 {
		return Invalid("the limit %d is negative", *r.Limit)
	}
	if r.Aggregation != nil {
		return r.Aggregation.check(r.Columns)
	}
	return nil
}

// Bind resolves the request against a snapshot: the table must exist and the constraint must fit its columns.
func (r ScanRequest) Bind(s *connector.Snapshot) (connector.ScanRequest, error) {
	name := connector.TableName{Schema: r.Schema, Table: r.Table}
	t, err := s.Table(name)
	if err != nil {
		return connector.ScanRequest{}, err
	}
	constraint, err := ParseConstraint(r.Constraint, t.ArrowSchema())
	if err != nil {
		return connector.ScanRequest{}, err
	}
	limit := int64(-1)
	if r.Limit != nil {
		limit = *r.Limit
	}
	return connector.ScanRequest{Table: t.Name(), Columns: r.Columns, Constraint: constraint, Limit: limit}, nil
}
