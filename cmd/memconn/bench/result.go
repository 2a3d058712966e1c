package bench

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Result is one figure of a scenario.
type Result struct {
	Scenario string  `json:"scenario"`
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Peer names what Value is compared with, and PeerValue is its figure in the
	// same unit: another database, another figure of memconn, or "limit" for a
	// fixed bound. An empty Peer means a figure that is compared with nothing.
	Peer      string  `json:"peer"`
	PeerValue float64 `json:"peerValue"`
	// Ratio compares the two so that more is better for memconn; 0 without a peer.
	Ratio float64 `json:"ratio"`
	// Must and Goal are ratios; 0 means none.
	Must float64 `json:"must"`
	Goal float64 `json:"goal"`
	// OK is false when Ratio is below Must.
	OK bool `json:"ok"`
}

// limitPeer is the Peer of figures with a fixed bound.
const limitPeer = "limit"

// lessIsBetter makes a Result of two times or sizes.
func lessIsBetter(scenario, metric, unit string, value float64, against peerFigure) Result {
	r := Result{
		Scenario: scenario, Metric: metric, Unit: unit, Value: value, OK: true,
		Peer: against.name, PeerValue: against.value, Must: against.must, Goal: against.goal,
	}
	if r.Peer != "" && value > 0 {
		r.Ratio = against.value / value
		r.OK = r.Ratio >= r.Must
	}
	return r
}

// peerFigure is what a figure is compared with, and the ratios wanted.
type peerFigure struct {
	name       string
	value      float64
	must, goal float64
}

// figure makes a Result that is compared with nothing.
func figure(scenario, metric, unit string, value float64) Result {
	return lessIsBetter(scenario, metric, unit, value, peerFigure{})
}

// WriteTable writes results as a table for people.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tfigure\tmemconn\tcompared with\tratio\tmust\tgoal\t")
	for _, r := range results {
		peer, ratio, verdict := "", "", ""
		if r.Peer != "" {
			peer = r.Peer + " " + short(r.PeerValue) + " " + r.Unit
			ratio = short(r.Ratio) + "x"
		}
		if r.Must > 0 {
			verdict = "ok"
			if !r.OK {
				verdict = "MISSED"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s %s\t%s\t%s\t%s\t%s\t%s\n", r.Scenario, r.Metric, short(r.Value), r.Unit,
			peer, ratio, factor(r.Must), factor(r.Goal), verdict)
	}
	return t.Flush()
}

func factor(f float64) string {
	if f == 0 {
		return ""
	}
	return short(f) + "x"
}

// short writes a number with three digits that count.
func short(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
