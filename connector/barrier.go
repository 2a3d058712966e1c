package connector

// HoldBarrier takes a snapshot and, in the same instant, forbids jobs to join rows of the
// table that the snapshot has with rows that are committed later. Until release is called
// every part's Sequence lies wholly up to w, the snapshot's version, or wholly behind it,
// but for parts of before. The caller closes the snapshot and calls release, once each.
// It never waits. A barrier that must outlive the process goes into Definition.Barriers
// before the release.
func (c *Connector) HoldBarrier(tableID uint64) (s *Snapshot, w uint64, release func()) {
	held, w, release := c.catalog.HoldBarrier(tableID)
	return &Snapshot{c: c, held: held}, w, release
}
