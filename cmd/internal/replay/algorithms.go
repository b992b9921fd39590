package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// AlgorithmOutcome has the decisions of one algorithm. Tokens may be fractions.
type AlgorithmOutcome struct {
	// Algorithm is the name in --algorithm.
	Algorithm string `json:"algorithm"`
	// Granted and Refused count requests. RefusedShare is the share of the refused ones.
	Granted      uint64  `json:"granted"`
	Refused      uint64  `json:"refused"`
	RefusedShare float64 `json:"refused_share"`
	// MostInWindow is the most tokens that one key was granted in any interval as long as a window,
	// and MostInTenth in any interval of a tenth of it. Requests count when they leave the queue of a
	// leaky bucket. The bounds are what the algorithm promises for such an interval.
	MostInWindow  float64 `json:"most_in_window"`
	BoundInWindow float64 `json:"bound_in_window"`
	MostInTenth   float64 `json:"most_in_tenth"`
	BoundInTenth  float64 `json:"bound_in_tenth"`
	// MostPartial reports that the log has more keys than are tracked for MostInWindow and
	// MostInTenth. A key with few grants may have more than they say.
	MostPartial bool `json:"most_partial"`
	// MeanDelay is the mean delay of a granted request in seconds. Only a leaky bucket delays.
	MeanDelay float64 `json:"mean_delay_seconds"`
	// MeanState is the mean size of a key's state in bytes at the end of the log, and LargestState
	// the size of the largest state ever. The table and the keys themselves are not in it.
	MeanState    float64 `json:"mean_state_bytes"`
	LargestState int     `json:"largest_state_bytes"`
	// Forgotten counts the keys that left the full table although their state was not the state of a
	// new key.
	Forgotten uint64 `json:"forgotten"`
	// NsPerDecision is the time of a decision in nanoseconds, with the look-up of the key: the median
	// of batches of 1,024 requests, and 0 if there is no request. It differs from run to run.
	NsPerDecision float64 `json:"ns_per_decision"`
}

// writeAlgorithms writes a table of the algorithms.
func (rep *Report) writeAlgorithms(b *strings.Builder) {
	limit, window := rep.Limits[0], rep.window
	row(b, "limit", "%s, burst %s", limit.Rate, grouped(limit.Burst))
	row(b, "window", "%s for %s %s\n", durationText(window), grouped(limit.Burst),
		plural(limit.Burst, "token", "tokens"))
	row(b, "requests", "%12s", grouped(rep.Requests))
	row(b, "keys", "%12s%s\n", grouped(rep.Keys), rep.keysNote())
	table := columns(b)
	fmt.Fprintf(table, "algorithm\tgranted\trefused\tin %s\tbound\tin %s\tbound\tdelay\tbytes\tns\t\n",
		durationText(window), durationText(window/10))
	for _, o := range rep.Algorithms {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t\n",
			o.Algorithm, grouped(o.Granted), grouped(o.Refused),
			atLeast(o.MostPartial)+tokens(o.MostInWindow), tokens(o.BoundInWindow),
			atLeast(o.MostPartial)+tokens(o.MostInTenth), tokens(o.BoundInTenth),
			delayText(o.MeanDelay), grouped(uint64(math.Round(o.MeanState))), o.NsPerDecision)
	}
	table.Flush()
	b.WriteString("\nin: the most tokens of one key in any such interval. bound: what the algorithm" +
		" promises.\ndelay, bytes: means of a grant and of a key's state. ns: a decision, median.\n")
	for _, o := range rep.Algorithms {
		b.WriteString(ifAny(o.Forgotten, o.Algorithm+" forgot %s times a key that was not idle,"+
			" because the table was full. Its bounds do not hold then.\n"))
	}
}

// tokens writes a number of tokens, with one decimal if it is not whole.
func tokens(n float64) string {
	n = math.Round(10*n) / 10
	if n == math.Trunc(n) {
		return grouped(uint64(n))
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// delayText writes a mean delay in seconds.
func delayText(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return durationText(time.Duration(seconds * float64(time.Second)))
}
