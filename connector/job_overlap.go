package connector

import (
	"slices"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// keyChain is a row of parts whose key ranges do not overlap, ascending.
type keyChain struct {
	parts []candidate
	bytes int64
	end   predicate.Value // greatest key
}

// keyChains divides parts, whose key ranges are known, into as few chains as there are
// parts over the key that most of them have. Ranges that only touch do not overlap.
func keyChains(cs []candidate) []*keyChain {
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(a, b candidate) int { return a.key.Min.Compare(b.key.Min) })
	var chains []*keyChain
	for _, c := range cs {
		var best *keyChain
		for _, k := range chains {
			if k.end.Compare(c.key.Min) <= 0 && (best == nil || best.end.Compare(k.end) < 0) {
				best = k
			}
		}
		if best == nil {
			best = &keyChain{}
			chains = append(chains, best)
		}
		best.parts = append(best.parts, c)
		best.bytes += c.bytes
		best.end = c.key.Max
	}
	return chains
}

// planOverlap takes sorted parts that overlap, so that a key is looked for in few parts:
// when enough chains of one tier of sizes do, the parts of the first stretch of keys that
// several of them have, up to maxMergeTargets full parts. Their results are one chain.
// Parts whose range is not exactly known are left alone, or nobody could tell that the
// results do not overlap any more.
func (o planning) planOverlap(done []candidate) []*table.Part {
	if !o.sorted {
		return nil
	}
	known := slices.DeleteFunc(slices.Clone(done), func(c candidate) bool { return !c.key.Bounded })
	chains := keyChains(known)
	slices.SortStableFunc(chains, func(a, b *keyChain) int { return int(max(-1, min(1, a.bytes-b.bytes))) })
	for lo := range chains {
		hi := lo
		for hi < len(chains) && chains[hi].bytes <= mergeTier*chains[lo].bytes {
			hi++
		}
		if hi-lo < mergeFanIn {
			continue
		}
		var cs []candidate
		for _, k := range chains[lo:hi] {
			cs = append(cs, k.parts...)
		}
		if sources := o.overlapping(cs); len(sources) > 0 {
			return sources
		}
	}
	return nil
}

// overlapping gives the first parts by key that overlap each other.
func (o planning) overlapping(cs []candidate) []*table.Part {
	slices.SortStableFunc(cs, func(a, b candidate) int { return a.key.Min.Compare(b.key.Min) })
	for lo := 0; lo < len(cs); {
		end, sum := cs[lo].key.Max, cs[lo].bytes
		hi := lo + 1
		for hi < len(cs) && cs[hi].key.Min.Compare(end) < 0 {
			if hi-lo >= maxJobSources || sum+cs[hi].bytes > maxMergeTargets*o.targetBytes {
				break
			}
			if cs[hi].key.Max.Compare(end) > 0 {
				end = cs[hi].key.Max
			}
			sum += cs[hi].bytes
			hi++
		}
		if sources := o.mergeableOf(cs[lo:hi]); len(sources) > 0 {
			return sources
		}
		lo = hi
	}
	return nil
}
