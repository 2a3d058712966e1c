package catalog_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

func TestBarriersAreHeldAndListed(t *testing.T) {
	c := catalog.New(10)
	def := &table.Definition{ID: 7, Schema: "s", Name: "t", Barriers: []uint64{3, 5}}
	_, err := c.Publish(&catalog.Edit{AddSchemas: []string{"s"}, PutTables: []*table.Definition{def}}, nil)
	require.NoError(t, err)

	s1, w1, release1 := c.HoldBarrier(7)
	defer s1.Close()
	require.EqualValues(t, 11, w1)
	require.Equal(t, w1, s1.Version().Number)
	s2, w2, release2 := c.HoldBarrier(7)
	defer s2.Close()
	require.Equal(t, w1, w2)
	require.Equal(t, []uint64{3, 5, 11}, c.Barriers(c.Current(), 7))
	require.Empty(t, c.Barriers(c.Current(), 8))

	release1()
	release1() // again: must not give up the other holder's
	require.Equal(t, []uint64{3, 5, 11}, c.Barriers(c.Current(), 7))
	release2()
	require.Equal(t, []uint64{3, 5}, c.Barriers(c.Current(), 7))
	require.Equal(t, []uint64{3, 5}, def.Barriers)
}

// TestBarrierAndSnapshotAreOne takes barriers while versions are published: a plan that
// does not see a barrier was made for a version that the barrier's snapshot has.
func TestBarrierAndSnapshotAreOne(t *testing.T) {
	c := catalog.New(0)
	const edits = 300
	var wg sync.WaitGroup
	type seen struct {
		number uint64
		there  []uint64
	}
	var plans []seen
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := range edits {
			def := &table.Definition{ID: uint64(i), Schema: "s", Name: "t"}
			_, _, err := c.PublishGroup([]catalog.Plan{func(cur *catalog.Version) (*catalog.Edit, error) {
				plans = append(plans, seen{cur.Number, c.Barriers(cur, 1)})
				e := &catalog.Edit{PutTables: []*table.Definition{def}}
				if i == 0 {
					e.AddSchemas = []string{"s"}
				} else {
					e.DropTables = []uint64{uint64(i - 1)}
				}
				return e, nil
			}}, func(*catalog.Version, []int) error { return nil })
			if err != nil {
				panic(err)
			}
		}
	}()
	var numbers []uint64
	var releases []func()
	for len(numbers) == 0 || numbers[len(numbers)-1] < edits {
		s, w, release := c.HoldBarrier(1)
		s.Close()
		if len(numbers) == 0 || numbers[len(numbers)-1] != w {
			numbers = append(numbers, w)
			releases = append(releases, release)
			continue
		}
		release()
	}
	wg.Wait()
	require.Len(t, plans, edits)
	for _, p := range plans {
		for _, w := range numbers {
			if w < p.number {
				require.Contains(t, p.there, w, "plan for version %d", p.number)
			}
		}
	}
	for _, release := range releases {
		release()
	}
	require.Empty(t, c.Barriers(c.Current(), 1))
}
