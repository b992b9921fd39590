package adapt

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// A rate is a whole number of millionths of a token a second, so each limit has the same Per.
	resolution = 1_000_000
	per        = resolution * time.Second

	minRate   = 0.001
	maxRate   = float64(time.Second)
	minTarget = time.Microsecond
	maxTarget = time.Hour
)

// Config is the range in which a Controller moves a limit, and its aim.
type Config struct {
	// Capacity is the burst of each bucket, in tokens: 1 to tb.MaxCapacity. The controller never
	// changes it. After a pause a burst reaches the downstream at once, so Capacity should be no
	// more than the downstream can take in half of TargetP99.
	Capacity int

	// Min and Max bound the rate, in tokens a second: 0.001 ≤ Min ≤ Max ≤ 10⁹. The rate is rounded
	// to millionths of a token a second. Min is the rate that clients keep while the downstream
	// fails. Max is a rate that the downstream can take for some seconds.
	Min, Max float64

	// Start is the first rate, Min to Max. 0 means Max.
	Start float64

	// TargetP99 is the latency of the downstream that 99 % of the requests should not exceed:
	// 1 µs to 1 h. It should be at least twice the p99 of a downstream without load.
	TargetP99 time.Duration

	// Now is the clock. It must be safe for concurrent use. nil means the monotonic clock of the
	// process.
	Now func() time.Time
}

// Validate returns a *tb.ConfigError if a field is out of range.
func (c Config) Validate() error {
	switch {
	case !(c.Min >= minRate && c.Min <= maxRate): // NaN fails both
		return &tb.ConfigError{Field: "Min", Value: c.Min, Range: "0.001 to 1e+09 tokens a second"}
	case !(c.Max >= c.Min && c.Max <= maxRate):
		return &tb.ConfigError{Field: "Max", Value: c.Max, Range: "Min to 1e+09 tokens a second"}
	case c.Start != 0 && !(c.Start >= c.Min && c.Start <= c.Max):
		return &tb.ConfigError{Field: "Start", Value: c.Start, Range: "0, or Min to Max"}
	case c.TargetP99 < minTarget || c.TargetP99 > maxTarget:
		return &tb.ConfigError{Field: "TargetP99", Value: c.TargetP99, Range: "1µs to 1h"}
	}
	return c.limit(c.Max).Validate()
}

func (c Config) limit(rate float64) tb.Limit {
	tokens := int64(math.Round(rate * resolution))
	return tb.Limit{Capacity: c.Capacity, Tokens: tokens, Per: per}
}

// Limiter is what a Controller moves, such as a limiter of tb/cas.
type Limiter interface {
	// SetLimit sets the limit of all keys. The controller makes one call at a time, in a call of
	// its own methods. SetLimit must not call the controller.
	SetLimit(tb.Limit) error
}

// LimiterFunc is a function as a Limiter. Use it for one tier of a limiter, or several limiters.
type LimiterFunc func(tb.Limit) error

// SetLimit calls f.
func (f LimiterFunc) SetLimit(l tb.Limit) error { return f(l) }

// Controller moves the rate of a limiter by what the downstream answers. Use New to make one. All
// methods are safe for concurrent use. None of them waits, except Stats.
//
// Begin and Refused report the decisions of the limiter. Rate and Stats are for metrics.
type Controller struct {
	config  Config
	limiter Limiter
	start   time.Time
	rate    atomic.Uint64 // bits of a float64
	hold    atomic.Int64  // latest instant until which the downstream asked to wait
	looked  atomic.Int64  // instant at which the counts were last looked at
	counts  [copies]counts

	mu      sync.Mutex // guards the fields below
	law     *law
	begin   time.Duration // of the interval
	before  totals        // at the begin of the interval
	now     totals
	seen    interval
	changes Stats // Raised, Lowered and Err
}

// New returns a controller of limiter, and sets the limiter's first limit. It returns a
// *tb.ConfigError if limiter is nil or the configuration is out of range, and otherwise the error
// of SetLimit.
func New(limiter Limiter, c Config) (*Controller, error) {
	if limiter == nil {
		return nil, &tb.ConfigError{Field: "limiter", Value: nil, Range: "a limiter"}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	ctl := &Controller{config: c, limiter: limiter}
	ctl.law = newLaw(&ctl.config)
	if err := limiter.SetLimit(c.limit(ctl.law.rate)); err != nil {
		return nil, err
	}
	ctl.start = time.Now()
	if c.Now != nil {
		ctl.start = c.Now()
	}
	ctl.rate.Store(math.Float64bits(ctl.law.rate))
	return ctl, nil
}

// elapsed reads the clock. Instants count from the start of the controller.
func (c *Controller) elapsed() time.Duration {
	if c.config.Now == nil {
		return time.Since(c.start)
	}
	return c.config.Now().Sub(c.start)
}

// Begin reports that the limiter has granted a request. Call it just before the request goes to
// the downstream.
func (c *Controller) Begin() Request {
	now := c.elapsed()
	c.anyCounts().begun.Add(1)
	c.look(now)
	return Request{c, now}
}

// Refused reports that the limiter has refused a request. The rate only grows in intervals with
// such a report: the limit must be what holds requests back.
func (c *Controller) Refused() {
	c.anyCounts().refused.Add(1)
	c.look(c.elapsed())
}

// Rate returns the present rate, in tokens a second.
func (c *Controller) Rate() float64 { return math.Float64frombits(c.rate.Load()) }

// Request is a request that the limiter has granted. It must end with exactly one call of Done,
// Fail or Cancel. Begin makes a Request; the zero value must not be used.
type Request struct {
	c     *Controller
	begin time.Duration
}

// Done reports an answer.
func (r Request) Done() { r.end(r.c.elapsed(), false, true) }

// Fail reports that the downstream is overloaded or down: an answer such as 429, 502, 503 or 504,
// a timeout or a failed connection. An error that the client caused, such as 404, is Done.
// retryAfter is the time that the downstream asks to wait, or 0. The rate does not grow in that
// time, of which 30 s count at most.
func (r Request) Fail(retryAfter time.Duration) {
	now := r.c.elapsed()
	if retryAfter > 0 {
		r.c.holdUntil(now + min(retryAfter, 30*time.Second))
	}
	r.end(now, true, false)
}

// Cancel reports that the client has left before the answer. The latency counts only if it is
// above the target already.
func (r Request) Cancel() { r.end(r.c.elapsed(), false, false) }

// end reports the end of a request. A latency up to the target counts only if it is of an answer.
func (r Request) end(now time.Duration, failed, answered bool) {
	n := r.c.anyCounts()
	latency, target := uint64(max(0, now-r.begin)), uint64(r.c.config.TargetP99)
	if answered || latency > target {
		latency = min(latency, maxTargets*target)
		n.latency[bucketOf(latency*stepsPerTarget/target)].Add(1)
		n.nanos.Add(latency)
	}
	if failed {
		n.failed.Add(1)
	}
	n.ended.Add(1)
	r.c.look(now)
}

// holdUntil records that the downstream asks for no more requests until an instant.
func (c *Controller) holdUntil(until time.Duration) {
	for {
		old := c.hold.Load()
		if old >= int64(until) || c.hold.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// anyCounts returns one of the counts. Choosing at random costs less than sharing.
func (c *Controller) anyCounts() *counts { return &c.counts[rand.Uint32()%copies] }

// look ends the interval if it is over, unless another goroutine is doing so. An instant that is
// much before the last look is of a clock that stepped back; a little is of a slow goroutine.
func (c *Controller) look(now time.Duration) {
	pace, since := c.law.pace, now-time.Duration(c.looked.Load())
	if (since >= pace || since < -longest*pace) && c.mu.TryLock() {
		defer c.mu.Unlock()
		c.decide(now)
	}
}

// decide ends the interval and sets the next rate. An interval with few answers goes on, but
// seldom for longer than eight times the usual length.
func (c *Controller) decide(now time.Duration) {
	c.looked.Store(int64(now))
	t, before, length := &c.now, &c.before, now-c.begin
	t.sum(&c.counts)
	if length < 0 { // the clock stepped back, and what lasts until an instant has ended
		l := c.law
		l.hold, l.excusedTail, l.excusedFails, l.trial.open = now, now, now, false
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
