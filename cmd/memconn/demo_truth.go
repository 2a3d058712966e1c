package main

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// sampleFlights is an Arrow file of 200,000 flights; see sample/README.md.
//
//go:embed sample/flights-200k.arrow
var sampleFlights []byte

// flights are the rows of the sample as plain slices: the tour's truth, which
// has never been near a table.
type flights struct {
	schema   *arrow.Schema
	delay    []int16
	distance []int16
	time     []float32
}

func readFlights(file []byte) (*flights, error) {
	reader, err := ipc.NewFileReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("read the sample: %w", err)
	}
	defer func() { _ = reader.Close() }()
	f := &flights{schema: reader.Schema()}
	for i := range reader.NumRecords() {
		batch, err := reader.RecordBatchAt(i)
		if err != nil {
			return nil, fmt.Errorf("read the sample: %w", err)
		}
		f.delay = append(f.delay, batch.Column(0).(*array.Int16).Int16Values()...)
		f.distance = append(f.distance, batch.Column(1).(*array.Int16).Int16Values()...)
		f.time = append(f.time, batch.Column(2).(*array.Float32).Float32Values()...)
		batch.Release()
	}
	return f, nil
}

// question is one query of the tour and its answer by a plain loop.
type question struct {
	sql   string
	truth func(f *flights) string // as the table printer writes the one row
	prune bool                    // a processed table reads only a part of the rows
}

var questions = []question{
	{
		sql:   "SELECT count(*) FROM flights WHERE distance = 1452",
		truth: func(f *flights) string { return fmt.Sprint(f.count(func(i int) bool { return f.distance[i] == 1452 })) },
		prune: true,
	},
	{
		sql: "SELECT count(*) FROM flights WHERE distance BETWEEN 2000 AND 2010 AND delay > 60",
		truth: func(f *flights) string {
			return fmt.Sprint(f.count(func(i int) bool { return f.distance[i] >= 2000 && f.distance[i] <= 2010 && f.delay[i] > 60 }))
		},
		prune: true,
	},
	{
		sql: "SELECT count(*), min(delay), max(delay) FROM flights WHERE distance > 4900",
		truth: func(f *flights) string {
			n, low, high := 0, int16(32767), int16(-32768)
			for i, d := range f.distance {
				if d > 4900 {
					n, low, high = n+1, min(low, f.delay[i]), max(high, f.delay[i])
				}
			}
			return fmt.Sprintf("%d %d %d", n, low, high)
		},
		prune: true,
	},
	{
		sql: "SELECT count(*) FROM (SELECT distance FROM flights GROUP BY distance HAVING count(*) >= 100) AS busy",
		truth: func(f *flights) string {
			byDistance := map[int16]int{}
			for _, d := range f.distance {
				byDistance[d]++
			}
			busy := 0
			for _, n := range byDistance {
				if n >= 100 {
					busy++
				}
			}
			return fmt.Sprint(busy)
		},
	},
	{
		sql: "SELECT count(*), sum(delay), max(time) FROM flights",
		truth: func(f *flights) string {
			sum, latest := int64(0), float32(0)
			for i, d := range f.delay {
				sum, latest = sum+int64(d), max(latest, f.time[i])
			}
			return fmt.Sprintf("%d %d %v", len(f.delay), sum, latest)
		},
	},
}

func (f *flights) count(keep func(i int) bool) int {
	n := 0
	for i := range f.delay {
		if keep(i) {
			n++
		}
	}
	return n
}

// add appends one flight to the truth.
func (f *flights) add(delay, distance int16, time float32) {
	f.delay, f.distance, f.time = append(f.delay, delay), append(f.distance, distance), append(f.time, time)
}
