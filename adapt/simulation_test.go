package adapt_test

import (
	"math/rand/v2"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
)

type client struct {
	control *adapt.Controller // nil for a fixed rate
	rate    float64           // requests a second
	limiter bucket
	samples []sample
}

type sample struct {
	at, latency time.Duration
	good        bool
}

func (c *client) SetLimit(l tb.Limit) error {
	c.rate = float64(l.Tokens) / l.Per.Seconds()
	return nil
}

// step is the time between two rates of a run.
const step = 100 * time.Millisecond

type run struct {
	scenario *scenario
	rates    [][]float64 // of each client, every step
	samples  [][]sample  // of each client
}

// simulate runs a scenario, in which each client has a controller. Runs with one seed are equal.
func simulate(s *scenario, seed uint64) *run {
	return simulateWith(s, seed, func(c *client, now func() time.Time) {
		var err error
		c.control, err = adapt.New(c, adapt.Config{
			Capacity: s.burst, Min: s.min, Max: s.max, Start: s.start, TargetP99: s.target, Now: now,
		})
		if err != nil {
			panic(err) // the scenarios are constant
		}
	})
}

// simulateFixed runs a scenario with a rate of each client that does not change.
func simulateFixed(s *scenario, seed uint64, rate float64) *run {
	return simulateWith(s, seed, func(c *client, _ func() time.Time) { c.rate = rate })
}

func simulateWith(s *scenario, seed uint64, begin func(*client, func() time.Time)) *run {
	var future events
	now := func() time.Time { return time.Unix(0, int64(future.now)) }
	arrivals := rand.New(rand.NewPCG(seed, 1))
	work := rand.New(rand.NewPCG(seed, 2))
	d := &downstream{s: s, events: &future, random: rand.New(rand.NewPCG(seed, 3))}
	list := make([]*client, s.count())
	for i := range list {
		c := &client{limiter: bucket{tokens: float64(s.burst)}}
		list[i] = c
		begin(c, now)
		var arrive func()
		arrive = func() {
			switch granted := c.limiter.take(future.now, c.rate, float64(s.burst)); {
			case granted:
				r := &request{client: c, begin: future.now, work: s.work(work)}
				if c.control != nil {
					r.report = c.control.Begin()
				}
				d.accept(r)
			case c.control != nil:
				c.control.Refused()
			}
			demand := s.phaseAt(future.now).demand * s.full() / float64(len(list))
			future.add(future.now+seconds(arrivals.ExpFloat64()/demand), arrive)
		}
		future.add(time.Duration(i)*s.join, arrive)
	}
	r := &run{scenario: s, rates: make([][]float64, len(list))}
	var watch func()
	watch = func() {
		for i, c := range list {
			r.rates[i] = append(r.rates[i], c.rate)
		}
		d.serve() // workers may have come back
		future.add(future.now+step, watch)
	}
	future.add(0, watch)
	future.until(s.length())
	for _, c := range list {
		r.samples = append(r.samples, c.samples)
	}
	return r
}
