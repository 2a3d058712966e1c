package table

import (
	"context"
	"fmt"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/ndv"
	"github.com/memconn/memconn/sparse"
	"github.com/memconn/memconn/spill"
)

// Open opens the part file id of the store and reads its footer only: no page is
// loaded. The caller owns the part. A file that does not fit the definition or
// whose sections are damaged gives an error that wraps spill.ErrCorrupt; nothing
// stays open then.
func Open(ctx context.Context, env Env, d *Definition, id uint64) (*Part, error) {
	if err := env.validate(); err != nil {
		return nil, fmt.Errorf("open part %d: %w", id, err)
	}
	file, err := env.Store.OpenPart(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("open part %d of table %s: %w", id, d.Name, err)
	}
	p := &Part{id: id, pool: env.Pool, file: file}
	if err = p.load(d); err != nil {
		err = fmt.Errorf("%w: %w", err, spill.ErrCorrupt)
	} else {
		err = p.reserveIndexes(ctx)
	}
	if err != nil {
		p.Drop()
		return nil, fmt.Errorf("open part %d of table %s (%s): %w", id, d.Name, file.Path(), err)
	}
	return p, nil
}

// load fills the part from its file's footer. Its errors mean that the footer,
// whose checksum was right, does not make sense.
func (p *Part) load(d *Definition) error {
	footer := p.file.Footer()
	l, err := decodeLayout(footer.Sections[sectionLayout])
	if err != nil {
		return err
	}
	if l.Table != d.ID {
		return fmt.Errorf("the file belongs to table %d, want table %d", l.Table, d.ID)
	}
	if footer.PageRows < 1 || footer.PageRows > MaxPageRows || footer.PageRows&(footer.PageRows-1) != 0 || footer.Rows < 0 {
		return fmt.Errorf("page rows %d and rows %d are out of range", footer.PageRows, footer.Rows)
	}
	p.tableID, p.rows, p.processed = l.Table, footer.Rows, l.Processed
	p.partition, p.written = l.Partition, written{codec: l.Codec, fpp: l.BloomFPP}
	p.shift = shiftOf(footer.PageRows)
	p.groups = int((p.rows + int64(footer.PageRows) - 1) >> p.shift)
	for i, f := range footer.Schema.Fields() {
		id, err := fieldID(f)
		if err != nil {
			return err
		}
		if p.columnIndex(id) >= 0 {
			return fmt.Errorf("column id %d is stored twice", id)
		}
		p.ids = append(p.ids, id)
		p.cols = append(p.cols, newPartColumn(id, f))
		if err := p.loadColumn(i, footer); err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	for _, id := range l.Blooms {
		p.loadBlooms(id)
	}
	if err := p.setSort(l.sortKeys()); err != nil {
		return err
	}
	if err := p.loadSparse(footer); err != nil {
		return err
	}
	p.file.ReleaseSections() // decoded; not needed again but for sketches at rest
	p.chooseSketches()
	p.restSketches()
	return nil
}

// loadColumn makes the page objects and the zone map of column i.
func (p *Part) loadColumn(i int, footer spill.Footer) error {
	c := &p.cols[i]
	c.pages = make([]*spill.Page, 0, min(p.groups, 1<<16))
	for g := range p.groups {
		page, err := p.file.Page(p.owner(), i, g)
		if err != nil {
			return err
		}
		c.pages = append(c.pages, page)
		if page.Rows() != p.groupRows(g) {
			return fmt.Errorf("page group %d has %d rows, want %d", g, page.Rows(), p.groupRows(g))
		}
	}
	if !c.ordered {
		return nil
	}
	zones, err := minmax.DecodeColumn(c.storage, footer.Sections[sectionZone(c.id)])
	if err != nil {
		return fmt.Errorf("zone map: %w", err)
	}
	if zones.Pages() != p.groups {
		return fmt.Errorf("zone map covers %d page groups, want %d", zones.Pages(), p.groups)
	}
	c.zones = zones
	section, ok := footer.Sections[sectionDistinct(c.id)]
	if !ok { // a part of an older program
		return nil
	}
	distinct, err := ndv.Decode(section)
	if err != nil {
		return err
	}
	c.setDistinct(distinct)
	return nil
}

// loadBlooms makes the page objects of a column's bloom filters. A group without
// a filter holds no non-NULL value or was written without one; both are read as
// "may match".
func (p *Part) loadBlooms(id ColumnID) {
	i := p.columnIndex(id)
	if i < 0 {
		return
	}
	c := &p.cols[i]
	c.blooms = make([]*spill.Page, p.groups)
	for g := range c.blooms {
		if page, ok := p.file.Blob(p.indexOwner(), blobBloom(id, g)); ok {
			c.blooms[g] = page
		}
	}
	if page, ok := p.file.Blob(p.indexOwner(), blobPartBloom(id)); ok {
		c.partBloom = page
	}
}

func (p *Part) loadSparse(footer spill.Footer) error {
	if len(p.sortFields) == 0 {
		return nil
	}
	x, err := sparse.Decode(p.sortFields, footer.Sections[sectionSparse])
	if err != nil {
		return fmt.Errorf("sparse index: %w", err)
	}
	if x.Groups() != p.groups {
		return fmt.Errorf("sparse index covers %d page groups, want %d", x.Groups(), p.groups)
	}
	p.sparse = x
	return nil
}

// reserveIndexes counts the indexes that stay in memory, and the page objects
// themselves, and fixes the sizes.
func (p *Part) reserveIndexes(ctx context.Context) error {
	n := p.residentIndexBytes()
	p.eachPage(func(*spill.Page) { n += spill.PageOverheadBytes })
	if n > 0 {
		r, err := p.pool.Reserve(ctx, p.indexOwner(), n)
		if err != nil {
			return fmt.Errorf("indexes of part %d: %w", p.id, err)
		}
		p.indexMem = r
	}
	p.account()
	return nil
}

func (p *Part) owner() spill.Owner {
	return spill.Owner{Class: spill.ClassPages, Table: p.tableID}
}

func (p *Part) indexOwner() spill.Owner {
	return spill.Owner{Class: spill.ClassIndexes, Table: p.tableID}
}
