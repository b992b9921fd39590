package main

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
)

// margin is how long before a full second a burst begins, and how long after it the burst ends.
const margin = 50 * time.Millisecond

// grant is when a granted request was sent, and when its answer came.
type grant struct{ sent, received time.Time }

// edges sends bursts across the edges of seconds. It prints how many requests were granted, and the
// most in two margins. It also prints by how many requests the worst interval exceeds what a burst
// of limit and limit a second allow.
func edges(conn *grpc.ClientConn) {
	r := newRequest(0)
	ask(conn, r) // connects
	var all []grant
	asked := 0
	for end := time.Now().Add(*duration); time.Now().Before(end); {
		edge := time.Now().Add(margin).Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(edge.Add(-margin)))
		for time.Now().Before(edge.Add(margin)) {
			sent := time.Now()
			if ask(conn, r) {
				all = append(all, grant{sent, time.Now()})
			}
			asked++
		}
	}
	fmt.Printf("asked=%d granted=%d worst_burst=%d over_the_bound=%d\n", asked, len(all),
		worstBurst(all), max(0, excess(all, float64(*limit), float64(*limit))))
}

// worstBurst returns the most grants within two margins.
func worstBurst(all []grant) (most int) {
	first := 0
	for i := range all {
		for all[i].received.Sub(all[first].sent) > 2*margin {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// excess returns by how many the grants of the worst interval exceed capacity + rate·interval,
// rounded down. The service has decided on a grant between sent and received, so the interval is at
// most the time between the first sent and the last received, and excess is never too high.
func excess(all []grant, capacity, rate float64) int {
	worst := -capacity
	start := 0.0 // the highest rate·sent − i of the grants i so far
	for i, g := range all {
		at := func(t time.Time) float64 { return rate * t.Sub(all[0].sent).Seconds() }
		if own := at(g.sent) - float64(i); i == 0 || own > start {
			start = own
		}
		worst = max(worst, float64(i+1)-at(g.received)+start-capacity)
	}
	return int(worst)
}
