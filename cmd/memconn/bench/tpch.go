package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/cmd/memconn/bench/peer"
	"github.com/memconn/memconn/connector"
)

// tpchName is the scenario that needs files.
const (
	tpchName    = "tpch"
	tpchMissing = "scenario tpch needs --tpch-dir: a directory with the tables as Parquet files and the queries as q*.sql, as make tpc-data makes it"
)

// The queries' total may take 1.5 times DuckDB's, better no more than DuckDB's.
const tpchMust, tpchGoal = 1 / 1.5, 1

// tpchSorted are the tables' natural keys.
var tpchSorted = map[string][]string{
	"lineitem": {"l_shipdate"}, "orders": {"o_orderdate"}, "customer": {"c_custkey"}, "part": {"p_partkey"},
	"partsupp": {"ps_partkey", "ps_suppkey"}, "supplier": {"s_suppkey"}, "nation": {"n_nationkey"}, "region": {"r_regionkey"},
}

// tpchScenario runs the queries one after the other, each on both sides in turns,
// and compares the totals of the medians. Without the files it says so.
func tpchScenario(ctx context.Context, s *suite) error {
	if s.o.TPCHDir == "" {
		s.say("%s", tpchMissing)
		s.emit(figure(tpchName, "not measured: --tpch-dir is not given", "-", 0))
		return nil
	}
	tables, err := filepath.Glob(filepath.Join(s.o.TPCHDir, "*.parquet"))
	if err != nil {
		return err
	}
	queries, err := filepath.Glob(filepath.Join(s.o.TPCHDir, "q*.sql"))
	if err != nil {
		return err
	}
	if len(tables) == 0 || len(queries) == 0 {
		return fmt.Errorf("%s has %d Parquet files and %d queries; %s", s.o.TPCHDir, len(tables), len(queries), tpchMissing)
	}
	if err := s.startPeer(); err != nil {
		return err
	}
	if err := s.dropTables(ctx); err != nil {
		return err
	}
	for _, file := range tables {
		if err := s.tpchLoad(ctx, file); err != nil {
			return err
		}
	}
	var ours, theirs time.Duration
	for _, file := range queries {
		one, beside, err := s.tpchQuery(ctx, file)
		if err != nil {
			return fmt.Errorf("query %s: %w", filepath.Base(file), err)
		}
		ours, theirs = ours+one, theirs+beside
	}
	s.emit(lessIsBetter(tpchName, fmt.Sprintf("total of %d queries", len(queries)), "s", ours.Seconds(),
		peerFigure{name: peerName(), value: theirs.Seconds(), must: tpchMust, goal: tpchGoal}))
	return nil
}

// tpchLoad reads one file into both sides; memconn's table is sorted and processed.
func (s *suite) tpchLoad(ctx context.Context, file string) error {
	name := strings.TrimSuffix(filepath.Base(file), ".parquet")
	s.say("load %s", name)
	if err := s.dropPeer(ctx, name); err != nil {
		return err
	}
	quoted := strings.ReplaceAll(file, "'", "''")
	if err := s.peer.Exec(ctx, fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM read_parquet('%s')", name, quoted)); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	reader, err := fileformat.Open(fileformat.Parquet, f, fileformat.Options{TempDir: s.dir})
	if err != nil {
		return err
	}
	defer reader.Release()
	spec := connector.TableSpec{Name: connector.TableName{Table: name}}
	for _, column := range tpchSorted[name] {
		spec.SortedBy = append(spec.SortedBy, connector.SortSpec{Column: column})
	}
	for _, field := range reader.Schema().Fields() {
		spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: field.Name, Type: field.Type})
	}
	if _, err := s.store.conn.Append(ctx, connector.WriteRequest{Create: &spec}, reader); err != nil {
		return err
	}
	_, err = s.store.process(ctx, name)
	return err
}

// tpchQuery checks one query's answers and gives the medians of both sides.
func (s *suite) tpchQuery(ctx context.Context, file string) (ours, theirs time.Duration, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	text := strings.TrimSuffix(strings.TrimSpace(string(raw)), ";")
	name := strings.TrimSuffix(filepath.Base(file), ".sql")
	c, err := s.peer.Conn()
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	if err := s.tpchSame(ctx, c, text); err != nil {
		return 0, 0, err
	}
	beside, err := c.Prepare(text)
	if err != nil {
		return 0, 0, err
	}
	defer beside.Close()
	var times, besideTimes []time.Duration
	for range s.o.Repeats {
		begin := time.Now()
		if err := s.store.exec(ctx, text); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(begin))
		begin = time.Now()
		if _, err := beside.Drain(); err != nil {
			return 0, 0, err
		}
		besideTimes = append(besideTimes, time.Since(begin))
	}
	slices.Sort(times)
	slices.Sort(besideTimes)
	ours, theirs = quantile(times, 0.5), quantile(besideTimes, 0.5)
	s.emit(lessIsBetter(tpchName, name+", median", "ms", microseconds(ours)/1e3, peerFigure{name: peerName(), value: microseconds(theirs) / 1e3}))
	return ours, theirs, nil
}

// tpchSame compares the rows of both sides: as text, in any order, numbers with a
// tolerance, because sums of floats depend on the order of addition.
func (s *suite) tpchSame(ctx context.Context, c *peer.Conn, text string) error {
	wrapped := "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (" + text + "\n) q"
	beside, err := c.Prepare(wrapped)
	if err != nil {
		return err
	}
	defer beside.Close()
	want, err := beside.Rows()
	if err != nil {
		return err
	}
	got, err := s.store.texts(ctx, wrapped)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("memconn has %d rows, DuckDB %d", len(got), len(want))
	}
	slices.SortFunc(got, slices.Compare)
	slices.SortFunc(want, slices.Compare)
	for row := range want {
		for column := range want[row] {
			if !sameText(got[row][column], want[row][column]) {
				return fmt.Errorf("row %d: memconn has %v, DuckDB %v", row, got[row], want[row])
			}
		}
	}
	return nil
}

// sameText allows numbers a relative difference of 1e-9.
func sameText(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return errors.Join(err, err2) == nil && math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y))
}

// texts runs a statement all of whose columns are text and gives its rows; NULL is
// "NULL".
func (t *store) texts(ctx context.Context, text string) ([][]string, error) {
	session := t.engine.NewSession()
	defer session.Close()
	r, err := session.Execute(ctx, text)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	err = readAll(ctx, r, func(b arrow.RecordBatch) error {
		for i := range int(b.NumRows()) {
			row := make([]string, b.NumCols())
			for c, column := range b.Columns() {
				values, ok := column.(*array.String)
				switch {
				case !ok:
					return fmt.Errorf("column %d is of type %s, want text", c+1, column.DataType())
				case values.IsNull(i):
					row[c] = "NULL"
				default:
					row[c] = strings.Clone(values.Value(i))
				}
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}
