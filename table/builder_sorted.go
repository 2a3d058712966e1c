package table

import (
	"context"
	"slices"
)

// FinishSorted is Finish for rows that were appended in the order of the definition's
// sort keys: the part is processed, as if Process had sorted it, with zone maps and
// sparse index. Bloom filters are Process's business: a definition with index columns
// gives a part that NeedsProcess. That the order holds is the caller's word, which
// Part.Verify checks.
func (b *Builder) FinishSorted(ctx context.Context) (*Part, error) {
	b.order = slices.Clone(b.def.Properties.SortedBy)
	return b.Finish(ctx)
}
