package peer

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Log is a Pebble store that takes one synced set for each row: the least that a
// durable insert can cost on this disk. It is safe for concurrent use.
type Log struct{ db *pebble.DB }

// OpenLog makes a store in the directory, which does not exist. The caller closes
// it.
func OpenLog(dir string) (*Log, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: quiet{}})
	if err != nil {
		return nil, fmt.Errorf("open the peer's log: %w", err)
	}
	return &Log{db: db}, nil
}

// Set writes a pair and returns when it is on the disk. Writers that come
// together share a sync.
func (l *Log) Set(key, value []byte) error { return l.db.Set(key, value, pebble.Sync) }

// Count counts the pairs.
func (l *Log) Count() (n int64, err error) {
	it, err := l.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	for more := it.First(); more; more = it.Next() {
		n++
	}
	return n, it.Close()
}

// Close ends the store.
func (l *Log) Close() error { return l.db.Close() }

// quiet is a logger that says nothing; a fault that it cannot go on from ends the
// program.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic("the peer's log: " + fmt.Sprintf(format, args...))
}
