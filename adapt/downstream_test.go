package adapt_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
)

// downstream is a pool of workers behind one queue. Requests wait in the order of their arrival.
// A request whose client has left is served all the same, as most servers do.
type downstream struct {
	s       *scenario
	events  *events
	random  *rand.Rand
	busy    int
	waiting []*request
	quota   bucket
}

type request struct {
	client *client
	begin  time.Duration
	work   float64 // seconds of a worker at full speed
	report adapt.Request
	ended  bool // answered, or its client has left
}

func (d *downstream) accept(r *request) {
	now := d.events.now
	switch {
	case d.random.Float64() < d.s.slow:
		d.events.add(now+d.s.slowTime, func() { r.end(d.events.now, true) })
	case d.s.quota > 0 && !d.quota.take(now, d.s.quota, d.s.quota/20),
		len(d.waiting) >= d.s.queue:
		d.events.add(now+time.Millisecond, func() { r.end(d.events.now, false) })
	default:
		d.waiting = append(d.waiting, r)
		d.events.add(now+d.s.patience, func() { r.end(d.events.now, false) })
		d.serve()
	}
}

func (d *downstream) serve() {
	workers, slower := d.s.workersAt(d.events.now)
	for d.busy < workers && len(d.waiting) > 0 {
		i := 0
		switch d.s.order {
		case anyOrder:
			i = d.random.IntN(len(d.waiting))
		case newestFirst:
			i = len(d.waiting) - 1
		}
		r := d.waiting[i]
		d.waiting = slices.Delete(d.waiting, i, i+1)
		d.busy++
		d.events.add(d.events.now+seconds(r.work*slower), func() {
			d.busy--
			r.end(d.events.now, d.random.Float64() >= d.s.errors)
			d.serve()
		})
	}
}

func (r *request) end(now time.Duration, good bool) {
	if r.ended {
		return
	}
	r.ended = true
	r.client.samples = append(r.client.samples, sample{now, now - r.begin, good})
	switch {
	case r.client.control == nil:
	case good:
		r.report.Done()
	default:
		r.report.Fail(0)
	}
}

type bucket struct {
	tokens float64
	filled time.Duration
}

func (b *bucket) take(now time.Duration, rate, capacity float64) bool {
	b.tokens = min(capacity, b.tokens+(now-b.filled).Seconds()*rate)
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
