package suggest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Several rates in one pass give what each rate gives alone.
func TestSeveralRatesAgreeWithEach(t *testing.T) {
	for seed := range programs(300) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		limits := []tb.Limit{randomLimit(rnd), randomLimit(rnd), randomLimit(rnd)}
		most := []uint64{1, 30, 3000}[seed%3]
		tokens := func() uint64 { return 1 + rnd.Uint64N(most) }
		log := randomLog(rnd, limits[0], 40, tokens)
		for i := range 20 { // clients with pauses
			key := string('f' + rune(i%7))
			log = append(log,
				request{key, log[len(log)-1].time + rnd.Int64N(int64(time.Hour)), tokens(),
					uint32(i % 3)})
			if rnd.IntN(4) == 0 {
				log = append(log, log[len(log)-1])
			}
		}
		together := collect(log, limits...)
		shares := []float64{0, 0.05, 0.2, 0.5}
		bursts := []uint64{1, 2, 3, 10, 40, 100, 1000}
		for i, limit := range limits {
			alone := collect(log, limit)
			clients, requests := alone.Refusals(0, bursts)
			gotClients, gotRequests := together.Refusals(i, bursts)
			if !slices.Equal(gotClients, clients) || !slices.Equal(gotRequests, requests) ||
				!slices.Equal(forClients(together, i, shares...), forClients(alone, 0, shares...)) {
				t.Fatalf("seed %d, rate %d: %d clients and %d requests, alone %d and %d", seed, i,
					gotClients, gotRequests, clients, requests)
			}
			if got, want := together.Requests(), alone.Requests(); got != want {
				t.Fatalf("%d requests, want %d", got, want)
			}
		}
	}
}
