package simulate

import (
	"slices"
	"time"
)

// window is what a law sees of an interval. Latencies are in seconds.
type window struct {
	s                      *Scenario
	now, length            time.Duration
	begun, good, failed    int
	refused                int
	inFlight, mostInFlight int
	mean, p90, p99         float64
}

// share returns the share of the requests that failed.
func (w *window) share() float64 { return float64(w.failed) / float64(w.good+w.failed) }

// overloaded is the sign of overload for laws that have no other: answers above the target, or
// more than 2 % failures.
func (w *window) overloaded() bool {
	return w.p99 > w.s.Target.Seconds() || w.share() > 0.02
}

// law returns the next rate, in requests a second.
type law interface {
	next(rate float64, w *window) float64
}

// windowed applies a law after each interval.
type windowed struct {
	s         *Scenario
	law       law
	interval  time.Duration
	current   float64
	begun     time.Duration // the interval
	w         window
	latencies []float64
}

func (c *windowed) rate() float64 { return c.current }

func (c *windowed) begin(now time.Duration) handle {
	c.w.begun++
	c.w.inFlight++
	c.w.mostInFlight = max(c.w.mostInFlight, c.w.inFlight)
	c.look(now)
	return nil
}

func (c *windowed) refused(now time.Duration) {
	c.w.refused++
	c.look(now)
}

func (c *windowed) end(now, begin time.Duration, _ handle, o outcome) {
	latency := now - begin
	c.w.inFlight--
	if o == success {
		c.w.good++
	} else {
		c.w.failed++
	}
	if o == success || latency > c.s.Target {
		c.latencies = append(c.latencies, latency.Seconds())
	}
	c.look(now)
}

// look ends the interval if it is over and has 20 answers, or one after 2 s.
func (c *windowed) look(now time.Duration) {
	w, ended := &c.w, c.w.good+c.w.failed
	w.s, w.now, w.length = c.s, now, now-c.begun
	if w.length < c.interval || ended < 20 && w.length < 2*time.Second || ended == 0 {
		return
	}
	if n := len(c.latencies); n > 0 {
		slices.Sort(c.latencies)
		for _, l := range c.latencies {
			w.mean += l / float64(n)
		}
		w.p90, w.p99 = c.latencies[n*90/100], c.latencies[n*99/100]
	}
	c.current = min(max(c.law.next(c.current, w), c.s.Min), c.s.Max)
	*w = window{inFlight: w.inFlight, mostInFlight: w.inFlight}
	c.begun, c.latencies = now, c.latencies[:0]
}
