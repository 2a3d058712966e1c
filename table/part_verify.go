package table

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

// Verify reads the whole part and checks it: every checksum of the file, every
// zone map and bloom filter against the values, and the sort order. What is wrong
// is named in an error that wraps spill.ErrCorrupt; other errors (memory, context)
// say that the check could not be made. One page of each column is in memory at a
// time.
func (p *Part) Verify(ctx context.Context) error {
	if p.file != nil {
		if err := p.file.Verify(ctx); err != nil {
			return fmt.Errorf("part %d: %w", p.id, err)
		}
	}
	for i := range p.cols {
		for g := range p.groups {
			if err := p.verifyPage(ctx, i, g); err != nil {
				return fmt.Errorf("part %d column %q page group %d: %w", p.id, p.cols[i].field.Name, g, err)
			}
		}
	}
	if err := p.verifyOrder(ctx); err != nil {
		return fmt.Errorf("part %d: %w", p.id, err)
	}
	return nil
}

// verifyPage checks one page against its zone map and bloom filters.
func (p *Part) verifyPage(ctx context.Context, i, g int) error {
	c := &p.cols[i]
	arr, err := c.pages[g].Pin(ctx)
	if err != nil {
		return err
	}
	defer c.pages[g].Unpin()
	if arr.Len() != p.groupRows(g) {
		return fmt.Errorf("%d rows, want %d: %w", arr.Len(), p.groupRows(g), spill.ErrCorrupt)
	}
	if c.zones != nil {
		if got, want := c.zones.Zone(g), minmax.Of(arr); !sameZone(got, want) {
			return fmt.Errorf("zone map is %+v, the values give %+v: %w", got, want, spill.ErrCorrupt)
		}
	}
	filters := []*spill.Page{c.partBloom}
	if c.blooms != nil {
		filters = append(filters, c.blooms[g])
	}
	for _, page := range filters {
		if page == nil {
			continue
		}
		if err := verifyBloom(ctx, page, arr); err != nil {
			return err
		}
	}
	return nil
}

// sameZone compares what pruning relies on.
func sameZone(a, b minmax.Zone) bool {
	return a.Rows == b.Rows && a.Nulls == b.Nulls && a.NaNs == b.NaNs && a.Bounded == b.Bounded &&
		a.Min == b.Min && a.Max == b.Max && a.MinExact == b.MinExact && a.MaxExact == b.MaxExact
}

func verifyBloom(ctx context.Context, page *spill.Page, arr arrow.Array) error {
	blob, err := page.PinBlob(ctx)
	if err != nil {
		return fmt.Errorf("bloom filter: %w", err)
	}
	defer page.Unpin()
	f, err := viewBloom(blob)
	if err != nil {
		return fmt.Errorf("bloom filter: %w: %w", err, spill.ErrCorrupt)
	}
	for row := range arr.Len() {
		if arr.IsValid(row) && !f.MayContain(predicate.At(arr, row)) {
			return fmt.Errorf("bloom filter denies the value of row %d: %w", row, spill.ErrCorrupt)
		}
	}
	return nil
}

// verifyOrder checks that the sort keys never decrease.
func (p *Part) verifyOrder(ctx context.Context) error {
	if len(p.sortFields) == 0 {
		return nil
	}
	encoder, err := sortidx.NewEncoder(p.sortFields)
	if err != nil {
		return err
	}
	var last, key []byte
	for g := range p.groups {
		err := p.withPages(ctx, p.sortCols, g, func(arrs []arrow.Array) error {
			for row := range arrs[0].Len() {
				key = encoder.Append(key[:0], arrs, row)
				if bytes.Compare(last, key) > 0 {
					return fmt.Errorf("page group %d row %d sorts before the row above it: %w", g, row, spill.ErrCorrupt)
				}
				last, key = key, last
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
