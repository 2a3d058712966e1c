package spill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Verify reads the whole file: header, tail, footer, and every page and blob, which is decoded and checked. It finds any
// changed bit. It takes memory for one page at a time, and does not make pages resident.
func (f *PartFile) Verify(ctx context.Context) error {
	if err := f.verify(ctx); err != nil {
		return fmt.Errorf("verify part %d: %w", f.id, err)
	}
	return nil
}

func (f *PartFile) verify(ctx context.Context) error {
	dir, err := f.directory()
	if err != nil {
		return err
	}
	_, footer, t, err := f.readFooter(ctx)
	if err != nil {
		return err
	}
	_, err = decodeDirectory(footer.bytes, t.footerOffset)
	footer.release()
	if err != nil {
		return f.corrupt(t.footerOffset, "footer", err.Error(), "a footer")
	}
	entries := make([]*pageEntry, 0, len(dir.pages)+len(dir.blobs))
	for i := range dir.pages {
		entries = append(entries, &dir.pages[i])
	}
	for i := range dir.blobs {
		entries = append(entries, &dir.blobs[i])
	}
	slices.SortFunc(entries, func(a, b *pageEntry) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.storedBytes(), b.storedBytes()))
	})
	end := int64(headerBytes)
	for _, e := range entries {
		// Every byte belongs to exactly one page, so every byte is under a checksum.
		if e.offset != end {
			return f.corrupt(e.offset, e.what(), fmt.Sprintf("offset %d", e.offset), fmt.Sprintf("offset %d", end))
		}
		end += e.storedBytes()
		if err := f.verifyPage(ctx, dir, e); err != nil {
			return err
		}
	}
	if end != t.footerOffset {
		return f.corrupt(end, "end of the pages", fmt.Sprint(end), fmt.Sprint(t.footerOffset))
	}
	return nil
}

// verifyPage reads one page into memory of the pool and lets it go.
func (f *PartFile) verifyPage(ctx context.Context, dir *directory, e *pageEntry) error {
	g := f.newPage(Owner{Class: ClassStaging}, nil, 0, e)
	if e.column >= 0 {
		storage, _, err := layoutOf(dir.footer.Schema.Field(int(e.column)).Type)
		if err != nil {
			g.Drop()
			return err
		}
		g.dtype, g.rows = storage, dir.footer.GroupRows(int(e.group))
	}
	defer g.Drop()
	if err := g.pinSlow(ctx, 1); err != nil {
		return err
	}
	g.Unpin()
	return nil
}
