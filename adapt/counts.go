package adapt

import (
	"math"
	"sync/atomic"
	"time"
)

// copies is the number of copies of the counts. A request adds to any of them, so that processors
// seldom contend for one.
const copies = 8

// counts are numbers since the start of the controller.
type counts struct {
	begun   atomic.Uint64
	refused atomic.Uint64
	ended   atomic.Uint64
	failed  atomic.Uint64
	nanos   atomic.Uint64 // sum of the latencies
	latency [buckets]atomic.Uint32
	_       [64]byte // keeps the next copy out of the cache line
}

// totals are the sums of all copies.
type totals struct {
	begun, refused, ended, failed, nanos uint64
	latency                              [buckets]uint32
}

func (t *totals) sum(all *[copies]counts) {
	*t = totals{}
	for i := range all {
		n := &all[i]
		t.ended += n.ended.Load() // before begun, so a request has begun if it has ended
		t.refused += n.refused.Load()
		t.failed += n.failed.Load()
		t.nanos += n.nanos.Load()
		for j := range n.latency {
			t.latency[j] += n.latency[j].Load()
		}
	}
	for i := range all {
		t.begun += all[i].begun.Load()
	}
}

// open returns the number of requests that have begun and not ended.
func (t *totals) open() uint64 {
	if t.ended > t.begun { // a request was ended twice
		return 0
	}
	return t.begun - t.ended
}

// decide ends the interval and sets the next rate. An interval with few answers goes on, but
// seldom for longer than eight times the usual length.
func (c *Controller) decide(now time.Duration) {
	c.looked.Store(int64(now))
	t, before, length := &c.now, &c.before, now-c.begin
	t.sum(&c.counts)
	if length < 0 { // the clock stepped back
		c.law.forget(now)
		c.hold.Store(int64(now))
		c.begin, c.before = now, *t
		return
	}
	begun, ended := t.begun-before.begun, t.ended-before.ended
	short := length < longest*c.law.pace
	if short && ended < minAnswers || ended == 0 && begun < minAnswers {
		return
	}
	v := &c.seen
	*v = interval{
		end:     now,
		length:  length,
		begun:   begun,
		ended:   ended,
		failed:  t.failed - before.failed,
		refused: t.refused - before.refused,
		open:    t.open(),
		hold:    time.Duration(c.hold.Load()),
	}
	for i := range v.latency.weight {
		v.latency.weight[i] = float64(t.latency[i] - before.latency[i])
		v.latency.total += v.latency.weight[i]
	}
	v.latency.sum = float64(t.nanos-before.nanos) / float64(time.Second)
	c.set(c.law.next(v))
	c.begin, c.before = now, *t
}

// set sets the rate, unless it rounds to the present one.
func (c *Controller) set(rate float64) {
	old := c.Rate()
	limit := c.config.limit(rate)
	if limit == c.config.limit(old) {
		return
	}
	if c.changes.Err = c.limiter.SetLimit(limit); c.changes.Err != nil {
		c.law.rate = old
		return
	}
	c.rate.Store(math.Float64bits(rate))
	if rate > old {
		c.changes.Raised++
	} else {
		c.changes.Lowered++
	}
}

// Stats is the state of a controller.
type Stats struct {
	Rate     float64       // tokens a second
	P50, P99 time.Duration // latency of a request that begins now, as estimated; 0 if unknown
	Failures float64       // average share of failed requests, 0 to 1
	InFlight int           // requests that have begun and not ended
	Raised   uint64        // changes to a higher rate
	Lowered  uint64        // changes to a lower rate

	// ExcusedTail means that lower rates did not lower P99, and that the controller therefore
	// judges the mean. ExcusedFailures means that lower rates did not lower Failures, and that the
	// controller tolerates more of them. Both last for a minute.
	ExcusedTail, ExcusedFailures bool

	// Err is the error of the last SetLimit, or nil. After an error the rate is the one before.
	Err error
}

// Stats returns the state of the controller. It takes some microseconds.
func (c *Controller) Stats() Stats {
	now := c.elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.sum(&c.counts)
	s, l := c.changes, c.law
	s.Rate, s.Failures, s.InFlight = c.Rate(), l.fails, int(c.now.open())
	s.P50 = time.Duration(l.p50 * float64(time.Second))
	s.P99 = time.Duration(l.p99 * float64(time.Second))
	s.ExcusedTail, s.ExcusedFailures = now < l.excusedTail, now < l.excusedFails
	return s
}
