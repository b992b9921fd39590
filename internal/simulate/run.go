// Package simulate compares controllers of a rate on a model of a downstream. Time is simulated,
// and a run is the same each time. Package adapt has the best controller. The others exist only
// here, as small versions of what other libraries do.
package simulate

import (
	"math/rand/v2"
	"time"
)

// controller controls the rate of one client. handle is what begin returned for the request.
type controller interface {
	begin(now time.Duration) handle
	end(now, begin time.Duration, h handle, o outcome)
	refused(now time.Duration)
	rate() float64 // requests a second
}

type handle any

// outcome is the end of a request.
type outcome int

const (
	success outcome = iota
	failure
)

// client has a demand, a limiter and a controller of its rate.
type client struct {
	control controller
	limiter bucket
	samples []sample
}

// sample is the end of a request.
type sample struct {
	at, latency time.Duration
	good        bool
}

// Step is the time between two values of Run.Rates.
const Step = 100 * time.Millisecond

// Run is a run of a scenario.
type Run struct {
	Scenario *Scenario
	Rates    [][]float64 // of each client, every Step
	samples  [][]sample  // of each client
}

// Simulate runs a scenario with one contender for each client. Runs with one seed are equal.
func Simulate(s *Scenario, c Contender, seed uint64) *Run {
	var future events
	arrivals := rand.New(rand.NewPCG(seed, 1))
	work := rand.New(rand.NewPCG(seed, 2))
	d := &downstream{s: s, events: &future, random: rand.New(rand.NewPCG(seed, 3))}
	clients := make([]*client, s.clients())
	for i := range clients {
		c := &client{control: c.start(s), limiter: bucket{tokens: float64(s.Burst)}}
		clients[i] = c
		var arrive func()
		arrive = func() {
			if c.limiter.take(future.now, c.control.rate(), float64(s.Burst)) {
				d.accept(&request{
					client: c,
					begin:  future.now,
					work:   s.work(work),
					handle: c.control.begin(future.now),
				})
			} else {
				c.control.refused(future.now)
			}
			demand := s.phaseAt(future.now).Demand * s.full() / float64(len(clients))
			future.add(future.now+seconds(arrivals.ExpFloat64()/demand), arrive)
		}
		future.add(time.Duration(i)*s.Join, arrive)
	}
	r := &Run{Scenario: s, Rates: make([][]float64, len(clients))}
	var watch func()
	watch = func() {
		for i, c := range clients {
			r.Rates[i] = append(r.Rates[i], c.control.rate())
		}
		d.serve() // workers may have come back
		future.add(future.now+Step, watch)
	}
	future.add(0, watch)
	future.until(s.length())
	for _, c := range clients {
		r.samples = append(r.samples, c.samples)
	}
	return r
}
