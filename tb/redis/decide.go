package redis

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// take takes cost from the state if it can, as the script does, and returns the decision.
func (m *layout) take(s *state, cost uint64) tb.Decision {
	d := tb.Decision{Allowed: m.pay(s, cost)}
	if !d.Allowed {
		d.RetryAfter = m.retry(s, cost)
	}
	d.Remaining = int((m.capacity - s.deficit) / m.scale)
	return d
}

// pay takes cost from the state if it can, as the script does, and reports whether it did.
func (m *layout) pay(s *state, cost uint64) bool {
	if s.deficit+cost > m.capacity {
		return false
	}
	s.deficit += cost
	return true
}

// retry returns the time from now until the bucket can pay cost, which it cannot pay now.
func (m *layout) retry(s *state, cost uint64) time.Duration {
	if cost > m.capacity {
		return tb.Never
	}
	return m.wait(s, s.deficit+cost-m.capacity)
}

// at returns the state at the time now, in µs, if no tokens are taken in between.
func (m *layout) at(s state, now uint64) state {
	s.now = now
	if now <= s.time {
		return s
	}
	hi, lo := bits.Mul64(s.time, m.n)
	phase := bits.Rem64(hi, lo, m.d)
	hi, lo = bits.Mul64(now-s.time, m.n)
	lo, carry := bits.Add64(lo, phase, 0)
	s.time = now
	if hi += carry; hi >= m.d {
		s.deficit = 0
		return s
	}
	supplied, _ := bits.Div64(hi, lo, m.d)
	s.deficit -= min(s.deficit, supplied)
	return s
}

// level returns how full the bucket is.
func (m *layout) level(s *state) tb.Level {
	units := m.capacity - s.deficit
	l := tb.Level{Tokens: float64(units) / float64(m.scale)}
	if s.deficit > 0 {
		l.NextToken = m.wait(s, m.scale-units%m.scale)
		l.Full = m.wait(s, s.deficit)
	}
	return l
}

// wait returns the time from now until the supply clock has shown the given units, at least one,
// after the state's own time. That is the first nanosecond t with S(t) ≥ S(time) + units:
//
//	time + ⌈(units·d − time·n mod d) / n⌉
//
// rounded up to nanoseconds and not to µs. It is Never if the clock of tb ends before, 292 years
// after 1970. The products have less than 91 bits, because units are below 2³² and d is below 2⁴⁸.
func (m *layout) wait(s *state, units uint64) time.Duration {
	const usec = uint64(time.Microsecond)
	hi, lo := bits.Mul64(s.time, m.n)
	phase := bits.Rem64(hi, lo, m.d)
	hi, lo = bits.Mul64(units, m.d)
	lo, borrow := bits.Sub64(lo, phase, 0)
	high, lo := bits.Mul64(lo, usec)
	high += (hi - borrow) * usec
	lo, carry := bits.Add64(lo, m.n-1, 0)
	if high += carry; high >= m.n || s.time > math.MaxInt64/usec {
		return tb.Never
	}
	ns, _ := bits.Div64(high, lo, m.n)
	if ns > math.MaxInt64-s.time*usec {
		return tb.Never
	}
	return time.Duration((s.time-s.now)*usec + ns)
}
