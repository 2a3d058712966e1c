package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// A point query may read one row of so many, and on small tables so many rows.
const (
	rowsReadShare = 10_000
	rowsReadLeast = 2400
)

// rowsReadScenario counts the rows that point queries on the sort column read when
// they fetch the other id, which no metadata can answer: a look at counters, which
// takes no time and has no peer.
func rowsReadScenario(ctx context.Context, s *suite) error {
	for _, column := range []string{"int_id", "varchar_id"} {
		if err := s.sorted(ctx, column); err != nil {
			return err
		}
		p, err := s.points(column)
		if err != nil {
			return err
		}
		most, groups, err := s.mostRead(ctx, p)
		if err != nil {
			return err
		}
		limit := max(rowsReadLeast, s.o.Rows/rowsReadShare)
		s.emit(lessIsBetter("rows-read", "most rows that a point query by "+column+" reads", "rows", float64(most),
			peerFigure{name: limitPeer, value: float64(limit), must: 1}))
		s.emit(figure("rows-read", "rows not read, by "+column, "%", 100*(1-float64(most)/float64(s.o.Rows))))
		s.emit(figure("rows-read", "most page groups read, by "+column, "groups", float64(groups)))
	}
	return nil
}

// mostRead fetches the rows of some keys and gives the greatest number of rows and of
// page groups that one query read.
func (s *suite) mostRead(ctx context.Context, p *points) (rows, groups int64, err error) {
	session := s.store.engine.NewSession()
	defer session.Close()
	other := "int_id"
	if !p.text {
		other = "varchar_id"
	}
	for i := 0; i < len(p.ids); i += max(1, len(p.ids)/64) {
		text := strings.Replace(p.literal(i), "count(*)", other, 1)
		r, err := session.Execute(ctx, text)
		if err != nil {
			return 0, 0, err
		}
		got := int64(0)
		if err := readAll(ctx, r, func(b arrow.RecordBatch) error { got += b.NumRows(); return nil }); err != nil {
			return 0, 0, err
		}
		if got != p.want(i) {
			return 0, 0, fmt.Errorf("%s: %d rows, want %d", text, got, p.want(i))
		}
		rows, groups = max(rows, r.Stats().RowsRead), max(groups, r.Stats().PageGroupsRead)
	}
	return rows, groups, nil
}
