package startree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// Cuboid is the cells of one mask of a segment.
type Cuboid struct {
	// Mask has bit i set when dimension i is rolled up.
	Mask uint32 `json:"mask"`
	// Rows is the number of cells, Bytes an estimate of their pages in memory.
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// Segment is a set of cells and the base rows they stand for: those that match the
// cube's filter and Region, whose sequence number is in (From, To], while the base
// table's DataEpoch is the segment's.
type Segment struct {
	// Region is over columns that are dimensions, by their names in the base table.
	Region predicate.Constraint
	// RegionText is how the user wrote it.
	RegionText          string
	From, To, DataEpoch uint64
	// Parts are the numbers of the state table's parts that hold the cells.
	Parts []uint64
	// BaseRows is the number of base rows covered, Cells that of the base cuboid.
	BaseRows, Cells int64
	Cuboids         []Cuboid
}

// Manifest is what a cube is and what it holds: the text that the hidden table's
// definition carries.
type Manifest struct {
	Definition Definition
	Segments   []Segment
}

// manifestVersion is the newest form that this package reads, and the one it writes.
const manifestVersion = 1

// The JSON forms. Columns are known by ID, so that names may change.
type manifestJSON struct {
	Version    int             `json:"version"`
	Dimensions []dimensionJSON `json:"dimensions"`
	Aggregates []aggregateJSON `json:"aggregates"`
	Filter     constraintJSON  `json:"filter"`
	FilterText string          `json:"filterText,omitempty"`
	Physical   string          `json:"physical,omitempty"`
	Budget     int64           `json:"budgetBytes,omitempty"`
	LeafRows   int             `json:"leafRows,omitempty"`
	Segments   []segmentJSON   `json:"segments"`
}

type dimensionJSON struct {
	Column table.ColumnID `json:"column"`
	Bucket Bucket         `json:"bucket,omitempty"`
}

type aggregateJSON struct {
	Func   Func           `json:"func"`
	Column table.ColumnID `json:"column,omitempty"`
}

type segmentJSON struct {
	Region     constraintJSON `json:"region"`
	RegionText string         `json:"regionText,omitempty"`
	From       uint64         `json:"from"`
	To         uint64         `json:"to"`
	DataEpoch  uint64         `json:"dataEpoch"`
	Parts      []uint64       `json:"parts"`
	BaseRows   int64          `json:"baseRows"`
	Cells      int64          `json:"cells"`
	Cuboids    []Cuboid       `json:"cuboids"`
}

// Encode gives the manifest as JSON. Columns are written by their ID, so that
// renaming a base column changes nothing.
func (m *Manifest) Encode(base *table.Definition) ([]byte, error) {
	if err := m.validate(base); err != nil {
		return nil, fmt.Errorf("encode a cube's manifest: %w", err)
	}
	d := &m.Definition
	out := manifestJSON{
		Version: manifestVersion, FilterText: d.FilterText, Physical: d.Physical, Budget: d.BudgetBytes, LeafRows: d.LeafRows,
		Dimensions: []dimensionJSON{}, Segments: []segmentJSON{},
	}
	var err error
	if out.Filter, err = encodeConstraint(base, d.Filter); err != nil {
		return nil, fmt.Errorf("encode a cube's filter: %w", err)
	}
	for _, dim := range d.Dimensions {
		out.Dimensions = append(out.Dimensions, dimensionJSON{dim.Column, dim.Bucket})
	}
	for _, a := range d.Aggregates {
		out.Aggregates = append(out.Aggregates, aggregateJSON(a))
	}
	for _, s := range m.Segments {
		region, err := encodeConstraint(base, s.Region)
		if err != nil {
			return nil, fmt.Errorf("encode a cube's region: %w", err)
		}
		out.Segments = append(out.Segments, segmentJSON{
			region, s.RegionText, s.From, s.To, s.DataEpoch, s.Parts, s.BaseRows, s.Cells, s.Cuboids,
		})
	}
	return json.Marshal(out)
}

// DecodeManifest reads what Encode wrote. It refuses unknown fields, newer versions,
// and manifests that do not fit the base table (a column gone or of another kind).
func DecodeManifest(data []byte, base *table.Definition) (*Manifest, error) {
	m, err := decodeManifest(data, base)
	if err == nil {
		err = m.validate(base)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a cube's manifest: %w", err)
	}
	return m, nil
}

func decodeManifest(data []byte, base *table.Definition) (*Manifest, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, err
	}
	if version.Version != manifestVersion {
		return nil, fmt.Errorf("it has version %d, this program reads version %d", version.Version, manifestVersion)
	}
	var in manifestJSON
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return nil, err
	}
	m := &Manifest{Definition: Definition{FilterText: in.FilterText, Physical: in.Physical, BudgetBytes: in.Budget, LeafRows: in.LeafRows}}
	var err error
	if m.Definition.Filter, err = decodeConstraint(base, in.Filter); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	for _, d := range in.Dimensions {
		dim := Dimension{Column: d.Column, Bucket: d.Bucket}
		dim.Name = dim.name(base)
		m.Definition.Dimensions = append(m.Definition.Dimensions, dim)
	}
	for _, a := range in.Aggregates {
		m.Definition.Aggregates = append(m.Definition.Aggregates, Aggregate(a))
	}
	for _, s := range in.Segments {
		region, err := decodeConstraint(base, s.Region)
		if err != nil {
			return nil, fmt.Errorf("region: %w", err)
		}
		m.Segments = append(m.Segments, Segment{
			region, s.RegionText, s.From, s.To, s.DataEpoch, s.Parts, s.BaseRows, s.Cells, s.Cuboids,
		})
	}
	return m, nil
}

// validate checks the definition and that no base row is in two segments (INV-C2).
func (m *Manifest) validate(base *table.Definition) error {
	if err := m.Definition.Validate(base); err != nil {
		return err
	}
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.From > s.To || s.BaseRows < 0 || s.Cells < 0 {
			return fmt.Errorf("segment %d covers the commits (%d, %d], %d rows, %d cells", i, s.From, s.To, s.BaseRows, s.Cells)
		}
		for _, name := range s.Region.Columns() {
			c, err := constraintColumn(base, s.Region, name)
			if err != nil {
				return fmt.Errorf("segment %d: %w", i, err)
			}
			if !m.Definition.dimension(c.ID) {
				return fmt.Errorf("segment %d: its region uses %s, which is no dimension", i, name)
			}
		}
		for k := range m.Segments[:i] {
			if s.overlaps(&m.Segments[k]) {
				return fmt.Errorf("segments %d and %d cover the same rows: %w", k, i, ErrOverlap)
			}
		}
	}
	return nil
}

// ErrOverlap is the errors.Is target when two segments of a cube cover the same rows.
var ErrOverlap = errors.New("regions overlap")

// overlaps tells whether some row may be in both. Segments of different epochs never
// answer one query.
func (s *Segment) overlaps(o *Segment) bool {
	return s.DataEpoch == o.DataEpoch && s.From < o.To && o.From < s.To && !s.Region.And(o.Region).IsNone()
}
