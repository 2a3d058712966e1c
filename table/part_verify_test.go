package table

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/spill"
)

func TestVerify(t *testing.T) {
	w := newWorld(t, 64<<20, 32)
	defer w.close(t)
	r := rand.New(rand.NewPCG(11, 11))
	m := &model{def: allTypes()}
	m.def.Properties.SortedBy = []SortKey{{Column: 6, Desc: true}, {Column: 15, NullsFirst: true}}
	for _, c := range m.def.Columns {
		m.def.Properties.IndexColumns = append(m.def.Properties.IndexColumns, c.ID)
	}
	batches := randomBatches(r, m, 500)
	defer releaseAll(batches)
	ctx := context.Background()
	fresh := buildParts(t, w, m.def, batches, 1)
	require.NoError(t, fresh[0].Verify(ctx))
	parts := process(t, w, m.def, fresh)
	require.NoError(t, parts[0].Verify(ctx))
	parts[0].Drop()
	p, err := Open(ctx, w.Env, m.def, parts[0].ID())
	require.NoError(t, err)
	defer p.Drop()
	require.NoError(t, p.Verify(ctx))

	// Each index in turn is exchanged for one that does not fit the values.
	id := p.columnIndex(1)
	zones := p.cols[id].zones
	wrong := minmax.NewBuilder(p.cols[id].storage)
	for range p.groups {
		z := zones.Zone(0)
		z.Rows = 32
		wrong.AddZone(z)
	}
	p.cols[id].zones = wrong.Finish()
	require.ErrorIs(t, p.Verify(ctx), spill.ErrCorrupt)
	p.cols[id].zones = zones

	blooms := p.cols[id].blooms
	p.cols[id].blooms = append(blooms[1:len(blooms):len(blooms)], blooms[0])
	require.ErrorContains(t, p.Verify(ctx), "bloom filter denies")
	p.cols[id].blooms = blooms

	p.sortFields[0].Desc = false
	require.ErrorContains(t, p.Verify(ctx), "sorts before")
	p.sortFields[0].Desc = true
	require.NoError(t, p.Verify(ctx))
}
