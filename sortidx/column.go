package sortidx

import (
	"cmp"
	"fmt"
)

// column is one sort column prepared for sorting or merging.
type column struct {
	words      wordSource
	desc       uint64 // all ones when descending: words are complemented
	nullsFirst bool
	rows       int
	valid      validity
}

func newColumn(f Field, l layout, p Pages) (column, error) {
	if err := p.check(l); err != nil {
		return column{}, err
	}
	c := column{words: newWordSource(l, p), nullsFirst: f.NullsFirst, rows: p.Len(), valid: newValidity(p)}
	if f.Desc {
		c.desc = ^uint64(0)
	}
	return c, nil
}

// newColumns prepares all sort columns and checks that they have equally many rows.
func newColumns(fields []Field, pages []Pages) ([]column, error) {
	layouts, err := layoutsOf(fields)
	if err != nil {
		return nil, err
	}
	if len(pages) != len(fields) {
		return nil, fmt.Errorf("sort key has %d columns, data has %d", len(fields), len(pages))
	}
	cols := make([]column, len(fields))
	for i := range fields {
		if cols[i], err = newColumn(fields[i], layouts[i], pages[i]); err != nil {
			return nil, fmt.Errorf("sort column %d: %w", i, err)
		}
		if err := samePages(pages[i], pages[0]); err != nil {
			return nil, fmt.Errorf("sort column %d: %w", i, err)
		}
	}
	return cols, nil
}

// samePages tells whether the rows of two columns have the same numbers.
func samePages(p, first Pages) error {
	if p.Shift == first.Shift && len(p.Arrays) == len(first.Arrays) {
		for i, arr := range p.Arrays {
			if arr.Len() != first.Arrays[i].Len() {
				return fmt.Errorf("page %d has %d rows, that of the first column has %d", i, arr.Len(), first.Arrays[i].Len())
			}
		}
		return nil
	}
	if p.checkDense() == nil && first.checkDense() == nil && p.Len() == first.Len() {
		return nil
	}
	return fmt.Errorf("%d rows in %d pages do not correspond to the first column's %d rows in %d pages",
		p.Len(), len(p.Arrays), first.Len(), len(first.Arrays))
}

// word is the column's word in sort direction.
func (c *column) word(row uint32, depth int) uint64 { return c.words.word(row, depth) ^ c.desc }

// more is wordSource.more for a word in sort direction.
func (c *column) more(word uint64, depth int) bool { return c.words.more(word^c.desc, depth) }

// mayHaveMore tells whether any of the words described by st may be followed by another word of its value.
func (c *column) mayHaveMore(st *wordStats, depth int) bool {
	if c.desc != 0 {
		return c.words.more(^st.and, depth)
	}
	return c.words.more(st.or, depth)
}

func (c *column) fillRows(items []uint64, depth int, out []uint64) {
	c.words.fillRows(items, depth, out)
	c.orient(out)
}

func (c *column) fillRange(page, lo, depth int, out []uint64) {
	c.words.fillRange(page, lo, depth, out)
	c.orient(out)
}

func (c *column) orient(words []uint64) {
	if c.desc == 0 {
		return
	}
	for i := range words {
		words[i] = ^words[i]
	}
}

// nullRank orders NULL against values: equal ranks are both NULL or both values.
func (c *column) nullRank(row uint32) int {
	if !c.valid.isNull(row) {
		return 0
	}
	if c.nullsFirst {
		return -1
	}
	return 1
}

// compare orders row a of c against row b of d, which is the same column or that of another run with the same field
// and the same strip. It begins at word depth, where depth > 0 says that both are values with equal words before.
func (c *column) compare(a uint32, d *column, b uint32, depth int) int {
	if depth == 0 && (c.valid.total > 0 || d.valid.total > 0) {
		ra, rb := c.nullRank(a), d.nullRank(b)
		if ra != rb {
			return cmp.Compare(ra, rb)
		}
		if ra != 0 {
			return 0
		}
	}
	for ; ; depth++ {
		wa, wb := c.word(a, depth), d.word(b, depth)
		if wa != wb {
			return cmp.Compare(wa, wb)
		}
		if !c.more(wa, depth) {
			return 0
		}
	}
}

// compareFrom orders two rows of the same columns, beginning at word depth of column at.
func compareFrom(cols []column, at, depth int, a, b uint32) int {
	for ; at < len(cols); at, depth = at+1, 0 {
		c := &cols[at]
		if r := c.compare(a, c, b, depth); r != 0 {
			return r
		}
	}
	return 0
}
