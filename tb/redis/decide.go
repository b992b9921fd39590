package redis

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func (m *layout) found(b []byte, now uint64) state {
	s := state{time: uint56(b[1:]), deficit: uint64(binary.BigEndian.Uint32(b[8:]))}
	s.was, s.lacked, s.change, s.held = s.time, s.deficit, uint56(b[12:]), b[0] == 1
	return m.at(s, now)
}

type effect struct {
	tb.Decision
	delay time.Duration // from now until the tokens may be used, also if they were refused
	units uint64        // that were taken
}

// apply does to the state what the script does for an item that is in time.
func (m *layout) apply(s *state, it *item) (o effect) {
	switch it.kind {
	case kindTake, kindReserve, kindKeep:
		o.units = it.units
	case kindCharge:
		full := s.deficit
		if !s.held {
			full += m.ahead(s)
		}
		o.units = min(it.units, 2*m.capacity-min(full, 2*m.capacity))
	case kindGiveBack:
		if s.lacked > m.capacity && min(s.lacked, s.deficit) <= m.capacity+it.units {
			s.was, s.lacked = s.time, s.deficit
		}
		o.units = min(it.units, s.lacked)
		if s.held { // pays the debt behind the hold
			o.units = min(it.units, s.lacked-m.capacity)
		}
		s.lacked -= o.units
		s.deficit -= min(s.deficit, o.units)
		return o
	case kindUndo:
		return effect{units: m.undo(s, it)}
	case kindReset:
		*s = state{time: s.now, now: s.now, was: s.now}
		return o
	case kindHold:
		m.hold(s, it.hold)
		return o
	default:
		return o
	}
	need := o.units + it.keep
	if s.deficit+need <= m.capacity {
		s.charge(o.units)
		o.Decision = tb.Decision{Allowed: true, Remaining: m.remaining(s, it.keep)}
		return o
	}
	if need <= m.capacity && !s.held {
		m.hold(s, it.hold)
	}
	o.Decision = tb.Decision{RetryAfter: m.retry(s, need), Remaining: m.remaining(s, it.keep)}
	o.delay = o.RetryAfter
	if it.kind == kindCharge {
		o.delay = m.wait(s, s.deficit+o.units-m.capacity)
		if o.delay == tb.Never {
			s.charge(0)
			return effect{Decision: tb.Decision{Allowed: true}}
		}
	}
	if it.kind == kindCharge || it.kind == kindReserve && m.waits(s, it, &o) {
		s.charge(o.units)
		*s = m.at(*s, s.now)
		o.Decision = tb.Decision{Allowed: true}
	}
	return o
}

func (s *state) charge(units uint64) {
	s.deficit += units
	s.was, s.lacked = s.time, s.deficit
}

// hold holds the bucket for a time from now in µs. Of two holds the later one counts, and a debt is
// behind it.
func (m *layout) hold(s *state, us uint64) {
	until := max(s.time, min(s.now+us, lastInstant))
	if us == 0 || until <= s.now || s.held && until <= s.time {
		return
	}
	debt := max(s.deficit, m.capacity) - m.capacity
	debt -= min(debt, m.supplied(s.time, until-s.time))
	s.time, s.deficit, s.change, s.held = until, m.capacity+debt, max(s.now, s.change+1), true
	s.charge(0)
}

func (m *layout) undo(s *state, it *item) (units uint64) {
	b := &it.before
	if s.change != b.change || s.held && s.was != b.time {
		return 0
	}
	if s.lacked > m.capacity {
		full := m.supplied(b.time, max(s.was, b.time)-b.time) + s.lacked
		if full != m.supplied(s.was, max(s.was, b.time)-s.was)+b.deficit+it.units {
			return 0 // a later reservation keeps its slot
		}
		units, s.was, s.lacked = it.units, b.was, b.lacked
	} else if s.was >= b.time && !s.held { // otherwise the clock was set back, or the tokens are lost
		owed := max(b.deficit+it.units, m.capacity) - m.capacity
		since := m.supplied(b.time, s.was-b.time) // the bucket may have been full
		units = min(it.units-min(it.units, max(since, owed)-owed), s.lacked)
		s.lacked -= units
	}
	s.deficit -= min(s.deficit, units)
	return units
}

// waits reports whether the bucket may be in debt for a reservation. Otherwise it sets RetryAfter.
func (m *layout) waits(s *state, it *item, o *effect) bool {
	if o.delay == tb.Never {
		return false
	}
	o.RetryAfter = 0
	debt, most := s.deficit+it.units-m.capacity+m.ahead(s), it.debt
	if s.held && most > m.capacity { // a Wait counts from the end of the hold
		most += m.ahead(s)
	}
	if debt > most {
		o.RetryAfter = m.wait(&state{time: s.now, now: s.now}, debt-it.debt)
	}
	o.RetryAfter = max(o.RetryAfter, o.delay-it.within)
	return o.RetryAfter == 0
}

func (m *layout) remaining(s *state, keep uint64) int {
	return int((m.capacity - min(m.capacity, s.deficit+keep)) / m.scale)
}

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

// at returns the state at the time now, in µs, if no tokens are taken in between. In debt only the
// deficit counts, so it goes back in time, too, unless the bucket is held.
func (m *layout) at(s state, now uint64) state {
	s.now = now
	switch {
	case now >= s.time:
		s.deficit -= min(s.deficit, m.supplied(s.time, now-s.time))
		s.time, s.held = now, false
	case s.deficit > m.capacity && !s.held:
		s.deficit += m.ahead(&s)
		s.time = now
	}
	return s
}

func (m *layout) ahead(s *state) uint64 { return m.supplied(s.now, s.time-s.now) }

// supplied returns the units that are supplied in the e µs after instant t, at most maxSupply.
func (m *layout) supplied(t, e uint64) uint64 {
	hi, lo := bits.Mul64(t, m.n)
	phase := bits.Rem64(hi, lo, m.d)
	hi, lo = bits.Mul64(e, m.n)
	lo, carry := bits.Add64(lo, phase, 0)
	if hi += carry; hi >= m.d {
		return maxSupply
	}
	units, _ := bits.Div64(hi, lo, m.d)
	return min(units, maxSupply)
}

func (m *layout) level(s *state, keep uint64) tb.Level {
	units := m.capacity - min(m.capacity, s.deficit)
	usable := units - min(units, keep)
	l := tb.Level{Tokens: m.tokens(usable)}
	if s.deficit == 0 {
		return l
	}
	l.NextToken, l.Full = tb.Never, m.wait(s, s.deficit)
	if next := keep + (usable/m.scale+1)*m.scale; next <= m.capacity {
		l.NextToken = m.wait(s, s.deficit+next-m.capacity)
	}
	if s.deficit > m.capacity && keep == 0 {
		l.Tokens = -m.tokens(s.deficit - m.capacity)
	}
	return l
}

// wait returns the time from now until the supply clock has shown the given units, at least one,
// after the state's own time. That is the first nanosecond t with S(t) ≥ S(time) + units:
//
//	time + ⌈(units·d − time·n mod d) / n⌉
//
// rounded up to nanoseconds and not to µs. It is Never if the clock of tb ends before, 292 years
// after 1970. The products have less than 122 bits, because units are below 2⁶³ and d is below 2⁴⁸.
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
