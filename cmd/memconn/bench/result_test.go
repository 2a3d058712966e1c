package bench

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResultRatio(t *testing.T) {
	for _, c := range []struct {
		name    string
		value   float64
		against peerFigure
		ratio   float64
		ok      bool
	}{
		{"faster than must", 2, peerFigure{name: "x", value: 120, must: 50}, 60, true},
		{"exactly must", 2, peerFigure{name: "x", value: 100, must: 50}, 50, true},
		{"slower than must", 2, peerFigure{name: "x", value: 90, must: 50}, 45, false},
		{"may be slower", 3, peerFigure{name: "x", value: 2, must: 1 / 1.5}, 2.0 / 3, true},
		{"no must", 3, peerFigure{name: "x", value: 1, goal: 2}, 1 / 3.0, true},
		{"no peer", 3, peerFigure{}, 0, true},
	} {
		r := lessIsBetter("s", c.name, "us", c.value, c.against)
		require.InDelta(t, c.ratio, r.Ratio, 1e-9, c.name)
		require.Equal(t, c.ok, r.OK, c.name)
	}
}

func TestResultJSONNames(t *testing.T) {
	line, err := json.Marshal(figure("restart", "parts", "parts", 3))
	require.NoError(t, err)
	require.JSONEq(t, `{"scenario":"restart","metric":"parts","value":3,"unit":"parts","peer":"","peerValue":0,"ratio":0,"must":0,"goal":0,"ok":true}`, string(line))
}

func TestWriteTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, WriteTable(&out, []Result{
		lessIsBetter("point-int", "median", "us", 2, peerFigure{name: "DuckDB", value: 300.4, must: 50, goal: 500}),
		lessIsBetter("point-int", "p99", "us", 10, peerFigure{name: "DuckDB", value: 300, must: 50}),
		figure("restart", "parts", "parts", 4),
	}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, strings.Fields("point-int median 2 us DuckDB 300 us 150x 50x 500x ok"), strings.Fields(lines[1]))
	require.Equal(t, strings.Fields("point-int p99 10 us DuckDB 300 us 30x 50x MISSED"), strings.Fields(lines[2]))
	require.Equal(t, strings.Fields("restart parts 4 parts"), strings.Fields(lines[3]))
}
