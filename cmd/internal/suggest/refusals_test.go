package suggest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Each burst refuses exactly these numbers of clients and requests.
func TestRefusalsAreThoseOfTheLimiter(t *testing.T) {
	bursts := []uint64{1, 2, 3, 5, 6, 7, 8, 13, 21, 50, 84, 200, 839, 3000}
	for seed := range programs(100) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		limit := randomLimit(rnd)
		var log []request
		times := []int{1, 1, 2, 7, 50}[rnd.IntN(5)] // so that great bursts refuse requests, too
		for _, r := range randomLog(rnd, limit, 300, func() uint64 { return 1 }) {
			log = append(log, slices.Repeat([]request{r}, times)...)
		}
		r := collect(log, limit)
		clients, requests := r.Refusals(0, bursts)
		for i, burst := range bursts {
			ofClients, ofRequests := refusedBy(t, limit, burst, log)
			if clients[i] != ofClients || requests[i] != ofRequests {
				t.Fatalf("%d every %v, burst %d: %d clients and %d requests, want %d and %d",
					limit.Tokens, limit.Per, burst, clients[i], requests[i], ofClients, ofRequests)
			}
		}
	}
}

// refusedBy returns how many clients and requests a burst refuses.
func refusedBy(
	t *testing.T, limit tb.Limit, burst uint64, log []request,
) (clients, requests uint64) {
	t.Helper()
	for _, n := range refusals(t, withCapacity(limit, burst), log) {
		clients++
		requests += n
	}
	return clients, requests
}

// Beyond their bound no times are kept, and requests are not counted.
func TestTimesAreBounded(t *testing.T) {
	for _, more := range []int{0, 1} {
		c := New([]tb.Limit{oneASecond}, true)
		for range maxTimes + more {
			c.Add(0, 0)
		}
		_, requests := c.Result([]Kind{OnePath}).Refusals(0, []uint64{5})
		if (requests == nil) != (more > 0) || more == 0 && requests[0] != maxTimes-5 {
			t.Errorf("%d more requests: %v refused", more, requests)
		}
	}
}
