package cas

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// tierBits is the width of a tier in the base of a cell.
const tierBits = 16

// limits are the limits of a limiter: one for all keys, or one for each tier. SetLimit installs
// another layout, and an era of the limit ends: the new layout begins a range of bases that no cell
// of the limiter has yet, and a cell of an ended era moves at its next grant.
type limits struct {
	one   atomic.Pointer[layout]   // nil if there are tiers
	tiers []atomic.Pointer[layout] // by tier, which is the upper bits of a base
	first layout                   // the layout that one begins with

	setting sync.Mutex    // of SetLimit
	owed    atomic.Uint64 // millionths of a token: see owe

	reservations, cancellations atomic.Uint64
	settled, unpaid             tokenSum
}

// init makes limit the limit of all keys.
func (s *limits) init(limit tb.Limit) {
	s.first = newLayout(limit)
	s.first.baseSpan = ^uint64(0)
	s.first.highest = new(atomic.Uint64)
	s.one.Store(&s.first)
}

// of returns where the layout of a cell's tier is. The one layout uses all bits of a base.
func (s *limits) of(base uint64) *atomic.Pointer[layout] {
	if s.tiers == nil {
		return &s.one
	}
	return &s.tiers[tierOf(base)]
}

// tier returns where the layout of a tier is.
func (s *limits) tier(i int) *atomic.Pointer[layout] {
	if s.tiers == nil {
		return &s.one
	}
	return &s.tiers[i]
}

// owner returns the layout of the cells with the given base, or nil if it is forgotten.
func (s *limits) owner(base uint64) *layout {
	m := s.of(base).Load()
	if m.owns(base) {
		return m
	}
	if i := m.history.find(base); i >= 0 {
		return m.history.eras[i].layout
	}
	return nil
}

// view returns the base and the word that a cell would have if m were its layout. Its own layout
// must not be later than m. A cell of another tier gets what its own tier has supplied by t.
func (s *limits) view(m *layout, base, word, t uint64) (uint64, uint64) {
	if m.owns(base) {
		return base, word
	}
	own := m
	if s.tiers != nil && tierOf(base) != tierOf(m.firstBase) {
		own = s.tiers[tierOf(base)].Load()
	}
	b := own.balanceSince(base, word)
	if own != m {
		b = m.inherit(own, b, t)
	}
	return m.cellOf(b, t)
}

// ownView returns the layout of a cell's tier, and the base and the word of the cell in it.
func (s *limits) ownView(base, word uint64) (m *layout, _, _ uint64) {
	m = s.of(base).Load()
	if m.owns(base) {
		return m, base, word
	}
	base, word = m.cellOf(m.balanceSince(base, word), m.supply.from)
	return m, base, word
}

// owe records that a bucket is to be in debt by a number of units, and reports whether the record
// is new, which it is at most 64 times. The caller must then load its layout again before it stores
// the debt, because the era of the old one may be forgotten by now.
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

func tierOf(base uint64) int { return int(base >> (64 - tierBits)) }

// setLimit makes l the limit of a tier, or of all keys.
func (s *limits) setLimit(tier *atomic.Pointer[layout], l tb.Limit, c *clock) error {
	if err := l.Validate(); err != nil {
		return err
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	t, m := c.read(), tier.Load()
	if l == m.limit {
		return nil
	}
	next, err := m.change(l, max(t, m.begin), s.owed.Load())
	if err != nil {
		return err
	}
	tier.Store(next)
	return nil
}
