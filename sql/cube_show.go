package sql

import (
	"strconv"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/token"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/startree"
)

// showCubes compiles SHOW CUBES. The first columns are openLooKeng's.
func (c *compiler) showCubes(of *grammar.QualifiedName) (*action, error) {
	var table connector.TableName
	if of != nil {
		var err error
		if table, err = c.table(*of); err != nil {
			return nil, err
		}
	}
	r := newRelation(field("Table Name", textColumn), field("Cube Name", textColumn), field("Status", textColumn),
		field("Dimensions", textColumn), field("Aggregations", textColumn), field("Cube Predicate", textColumn),
		field("Cells", intColumn), field("Bytes", intColumn), field("Stale Rows", intColumn))
	return c.listing(r, func(r *relation) error {
		cubes, err := c.run.hold().Cubes(table)
		if err != nil {
			if connector.CodeOf(err) == connector.CodeTableNotFound {
				err = connector.Errorf(connector.CodeTableNotFound, "Table %s does not exist", table)
			}
			return err
		}
		for _, cube := range cubes {
			d := CubeTexts(cube)
			r.add(cube.Table().String(), cube.Name().String(), string(cube.Status()), strings.Join(d.Dimensions, ", "),
				strings.Join(d.Aggregations, ", "), d.Predicate, cube.Cells(), cube.MemBytes(), cube.StaleRows())
		}
		return nil
	}), nil
}

func (c *compiler) showCreateCube(q grammar.QualifiedName) (*action, error) {
	name, err := c.table(q)
	if err != nil {
		return nil, err
	}
	cube, err := c.run.hold().Cube(name)
	if err != nil {
		if connector.CodeOf(err) == connector.CodeCubeNotFound {
			err = connector.Errorf(connector.CodeCubeNotFound, "CUBE '%s' does not exist", name)
		}
		return nil, err
	}
	if cube.Manifest() == nil {
		return nil, cube.Err()
	}
	return c.listing(newRelation(field("Create Cube", textColumn)), func(r *relation) error {
		r.add(CubeTexts(cube).Create)
		return nil
	}), nil
}

// CubeText is a cube in words, as SHOW CUBES and the REST interface show it.
type CubeText struct {
	Dimensions, Aggregations []string
	// Predicate is FILTER and the regions that were inserted.
	Predicate string
	// Create is the CREATE CUBE statement that makes the cube again; the regions of a cube
	// with several follow as INSERT INTO CUBE statements in a comment.
	Create string
}

// CubeTexts describes a cube; a cube that cannot be read has no texts.
func CubeTexts(cube *connector.Cube) CubeText {
	var t CubeText
	m := cube.Manifest()
	if m == nil {
		return t
	}
	for _, d := range m.Definition.Dimensions {
		t.Dimensions = append(t.Dimensions, dimensionText(cube, d))
	}
	for _, a := range m.Definition.Aggregates {
		t.Aggregations = append(t.Aggregations, aggregateText(cube, a))
	}
	regions := cube.RegionTexts()
	t.Predicate = predicateText(m.Definition.FilterText, regions)
	t.Create = createCubeText(cube, t, regions)
	return t
}

func columnText(cube *connector.Cube, d startree.Dimension) string {
	if column, ok := cube.Base().ColumnByID(d.Column); ok {
		return ident(column.Name)
	}
	return d.Name
}

func dimensionText(cube *connector.Cube, d startree.Dimension) string {
	if d.Bucket == startree.BucketNone {
		return columnText(cube, d)
	}
	return "date_trunc(" + token.QuoteString(string(d.Bucket)) + ", " + columnText(cube, d) + ")"
}

func aggregateText(cube *connector.Cube, a startree.Aggregate) string {
	switch a.Func {
	case startree.CountStar:
		return "count(*)"
	case startree.CountDistinct:
		return "count(distinct " + columnText(cube, startree.Dimension{Column: a.Column}) + ")"
	}
	return a.Func.String() + "(" + columnText(cube, startree.Dimension{Column: a.Column}) + ")"
}

// predicateText joins FILTER with the regions; a region that is the whole table adds
// nothing.
func predicateText(filter string, regions []string) string {
	var some []string
	for _, r := range regions {
		if r == "" {
			return filter
		}
		some = append(some, r)
	}
	region := strings.Join(some, " OR ")
	if len(some) > 1 {
		region = "(" + strings.Join(some, ") OR (") + ")"
	}
	switch {
	case filter == "":
		return region
	case region == "":
		return filter
	case len(some) > 1:
		region = "(" + region + ")"
	}
	return filter + " AND " + region
}

func createCubeText(cube *connector.Cube, t CubeText, regions []string) string {
	d := cube.Manifest().Definition
	var b strings.Builder
	b.WriteString("CREATE CUBE " + qualified(cube.Name()) + " ON " + qualified(cube.Table()) + " WITH (\n")
	b.WriteString("   AGGREGATIONS = (" + strings.Join(t.Aggregations, ", ") + "),\n   GROUP = (" + strings.Join(t.Dimensions, ", ") + ")")
	if d.FilterText != "" {
		b.WriteString(",\n   FILTER = (" + d.FilterText + ")")
	}
	if d.Physical != "" {
		b.WriteString(",\n   physical = " + token.QuoteString(d.Physical))
	}
	if d.BudgetBytes > 0 {
		b.WriteString(",\n   budget_bytes = " + strconv.FormatInt(d.BudgetBytes, 10))
	}
	if d.LeafRows > 0 {
		b.WriteString(",\n   leaf_rows = " + strconv.Itoa(d.LeafRows))
	}
	b.WriteString("\n)")
	if len(regions) == 1 && regions[0] != "" {
		b.WriteString("\nWHERE " + regions[0])
	}
	if len(regions) > 1 || len(regions) == 1 && regions[0] == "" {
		b.WriteString("\n/* filled by:")
		for _, r := range regions {
			b.WriteString("\nINSERT INTO CUBE " + qualified(cube.Name()))
			if r != "" {
				b.WriteString(" WHERE " + strings.ReplaceAll(r, "*/", "* /"))
			}
			b.WriteByte(';')
		}
		b.WriteString("\n*/")
	}
	return b.String()
}

func qualified(n connector.TableName) string {
	return tree.Catalog + "." + ident(n.Schema) + "." + ident(n.Table)
}
