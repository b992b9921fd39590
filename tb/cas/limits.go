package cas

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// limits are the limits of a limiter: one for all keys, or one for each tier. SetLimit installs
// another layout, and an era of the limit ends. A cell of an ended era moves at its next grant.
type limits struct {
	one   atomic.Pointer[layout]   // nil if there are tiers
	tiers []atomic.Pointer[layout] // by tier

	setting sync.Mutex    // of SetLimit
	owed    atomic.Uint64 // millionths of a token: see owe

	reservations, cancellations atomic.Uint64
	settled, unpaid             unit.Sum
}

// noLimit is the panic of a call on the zero Limiter or the zero Bucket. No limit would be right
// for them: a call that passes is an over-grant, and a refusal hides the mistake.
const noLimit = "ratelimit: a Limiter or Bucket without a limit: New, NewTiered, " +
	"NewTokenBucket and NewBucket make one"

// tier returns where the layout of a tier is.
func (s *limits) tier(i int) *atomic.Pointer[layout] {
	if s.tiers == nil {
		return &s.one
	}
	return &s.tiers[i]
}

// present returns the layout of a tier.
func (s *limits) present(tier int) *layout {
	m := s.tier(tier).Load()
	if m == nil {
		panic(noLimit)
	}
	return m
}

// of returns where the layout of a cell's tier is.
func (s *limits) of(c *cell) *atomic.Pointer[layout] { return s.tier(c.tier()) }

// layoutOf returns the layout of a bucket whose cell is c, or the one of tier 0 if it has none.
func (s *limits) layoutOf(c *cell) *layout {
	if m := s.one.Load(); m != nil {
		return m
	}
	return s.ofTier(c)
}

// ofTier is layoutOf for several tiers. It is a function so that layoutOf is inlined.
func (s *limits) ofTier(c *cell) *layout {
	if c == nil {
		return s.present(0)
	}
	return s.of(c).Load()
}

// view returns the balance that the bucket of a cell has in m. The cell's own layout must not be
// later than m. A bucket of another tier has what its own tier has supplied by t.
func (s *limits) view(m *layout, c *cell, word, t uint64) balance {
	if c.isHeld() {
		until, micros := c.heldUntil(word)
		if until > max(t, m.begin) {
			b := m.balanceWith(-micros, m.supply.at(until))
			b.until = until
			return b
		}
		t = max(t, until)
	}
	if c.tier() == tierOf(m.owner) {
		return m.balanceSince(c, word)
	}
	own := s.of(c).Load()
	tokens, since := own.tokensAt(own.balanceSince(c, word), max(t, own.begin))
	return m.balanceWith(tokens, m.supply.at(max(since, m.begin))) // it has had the supply of own
}

// setLimit makes l the limit of a tier, or of all keys, at the reading that now returns. It calls
// now under the lock, so that the readings of changes do not overtake each other. ending is called
// with the layout whose era ends, and returns it.
func (s *limits) setLimit(
	tier *atomic.Pointer[layout], l tb.Limit, now func() uint64,
	ending func(m *layout, t uint64) *layout,
) error {
	if err := l.Validate(); err != nil {
		return err
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	t, m := now(), tier.Load()
	if m == nil {
		panic(noLimit)
	}
	if l == m.limit {
		return nil
	}
	tier.Store(ending(m, t).change(l, max(t, m.begin), s.owed.Load()))
	return nil
}

// checkTier returns an error if the tier does not exist. A limiter of New has tier 0.
func (s *limits) checkTier(tier int) error {
	if last := max(len(s.tiers), 1) - 1; tier < 0 || tier > last {
		return &tb.ConfigError{Field: "tier", Value: tier, Range: fmt.Sprintf("0 to %d", last)}
	}
	return nil
}

// owe records that a bucket is to be in debt by a number of units, and reports whether the record
// is new, which it is at most 64 times. The caller must then load its layout again: DESIGN.md §10.
func (s *limits) owe(m *layout, units uint64) bool {
	micros := m.microsUpTo(units) + maxScale // in another layout it is rounded up to whole units
	for {
		owed := s.owed.Load()
		if micros <= owed {
			return false
		}
		if s.owed.CompareAndSwap(owed, 1<<bits.Len64(micros)) {
			return true
		}
	}
}

// addTo adds the counts of reservations to the statistics of the table.
func (s *limits) addTo(stats *tb.Stats) {
	stats.Reservations = s.reservations.Load()
	stats.Cancellations = s.cancellations.Load()
	stats.Settled = s.settled.Tokens()
	stats.Unpaid = s.unpaid.Tokens()
}
