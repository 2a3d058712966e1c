package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
)

// rawTable is the peer's unsorted table.
const rawTable = "events_raw"

// tableBy names the table sorted by a column; "" is the unsorted one.
func tableBy(column string) string {
	if column == "" {
		return rawTable
	}
	return "events_by_" + column
}

// startPeer opens DuckDB, without any table.
func (s *suite) startPeer() error {
	if s.peer != nil {
		return nil
	}
	db, err := peer.Open(peer.Options{TempDir: filepath.Join(s.dir, "peer-tmp")})
	s.peer = db
	return err
}

// openPeer gives DuckDB, with the rows loaded but not sorted.
func (s *suite) openPeer(ctx context.Context) (*peer.DB, error) {
	if err := s.startPeer(); err != nil {
		return nil, err
	}
	if s.peerTables[rawTable] {
		return s.peer, nil
	}
	s.say("load %d rows into DuckDB", s.o.Rows)
	_, err := s.loadPeer(ctx)
	return s.peer, err
}

// loadPeer loads the unsorted table into DuckDB and gives the time that took,
// the making of the rows included.
func (s *suite) loadPeer(ctx context.Context) (time.Duration, error) {
	events, err := s.events()
	if err != nil {
		return 0, err
	}
	return s.loadPeerTable(ctx, rawTable, events)
}

// loadPeerTable makes a table of DuckDB from generated rows.
func (s *suite) loadPeerTable(ctx context.Context, name string, events *Events) (time.Duration, error) {
	if err := s.dropPeer(ctx, name); err != nil {
		return 0, err
	}
	if err := peerRoom(events); err != nil {
		return 0, err
	}
	next, stop := events.Next(ctx)
	defer stop()
	begin := time.Now()
	if err := s.peer.Load(ctx, name, events.Schema(), next); err != nil {
		return 0, err
	}
	s.peerTables[name] = true
	return time.Since(begin), nil
}

// sortPeer makes DuckDB's table sorted by the column and gives the time.
func (s *suite) sortPeer(ctx context.Context, column string) (time.Duration, error) {
	db, err := s.openPeer(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.dropPeer(ctx, tableBy(column)); err != nil {
		return 0, err
	}
	events, err := s.events()
	if err != nil {
		return 0, err
	}
	if err := peerRoom(events); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = db.Exec(ctx, "CREATE TABLE "+tableBy(column)+" AS SELECT * FROM "+rawTable+" ORDER BY "+column)
	s.peerTables[tableBy(column)] = err == nil
	return time.Since(begin), err
}

func (s *suite) dropPeer(ctx context.Context, table string) error {
	s.peerTables[table] = false
	return s.peer.Exec(ctx, "DROP TABLE IF EXISTS "+table)
}

// sortedPeer makes sure that DuckDB has the table sorted by the column.
func (s *suite) sortedPeer(ctx context.Context, column string) error {
	if s.peerTables[tableBy(column)] {
		return nil
	}
	if s.o.Columns == ColumnsIDs {
		return s.orderedPeer(ctx, column)
	}
	s.say("sort in DuckDB by %s", column)
	_, err := s.sortPeer(ctx, column)
	return err
}

// orderedPeer loads the two ids in their order, which is the same for both: so many
// rows that there is no room for unsorted ones beside them.
func (s *suite) orderedPeer(ctx context.Context, column string) error {
	if err := s.startPeer(); err != nil {
		return err
	}
	for made := range s.peerTables {
		if s.peerTables[made] {
			s.peerTables[tableBy(column)] = true
			return s.peer.Exec(ctx, "CREATE VIEW "+tableBy(column)+" AS SELECT * FROM "+made)
		}
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	s.say("load %d rows into DuckDB, in order", s.o.Rows)
	_, err = s.loadPeerTable(ctx, tableBy(column), events.InOrder())
	return err
}

// peerRoom says whether the machine has room for one more table of DuckDB.
func peerRoom(events *Events) error {
	free, err := availableMemory()
	if errors.Is(err, errNoProc) {
		return nil // not known
	}
	if err != nil {
		return err
	}
	if need := events.Rows()*peerRowBytes(events.Schema()) + spareBytes; need > free {
		return fmt.Errorf("a table of %d rows takes about %d MB in DuckDB and the machine has %d MB left: take fewer --rows, a smaller --budget, or --columns %s",
			events.Rows(), need/1e6, free/1e6, ColumnsIDs)
	}
	return nil
}

// spareBytes is what a table's making takes beside the table.
const spareBytes = 256 << 20

// peerRowBytes is what DuckDB keeps for a row in memory, where it does not
// compress: texts of more than twelve bytes as a reference and the bytes.
func peerRowBytes(schema *arrow.Schema) int64 {
	const reference, text = 16, 16
	bytes := int64(0)
	for _, f := range schema.Fields() {
		if fixed, ok := f.Type.(arrow.FixedWidthDataType); ok {
			bytes += int64(fixed.Bytes())
			continue
		}
		bytes += reference + text
	}
	return bytes
}

// peerName names the peer in results.
func peerName() string { return "DuckDB " + peer.Version() }
