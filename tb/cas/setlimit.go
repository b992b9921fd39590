package cas

import (
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// SetLimit makes limit the limit of all keys, or of tier 0 if there are several. It returns a
// *tb.ConfigError, and changes nothing, if the limit is out of range. To set the present limit
// again changes nothing. DESIGN.md §10 says how long the limiter remembers a limit.
func (l *Limiter[K]) SetLimit(limit tb.Limit) error { return l.SetTier(0, limit) }

// Limit returns the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) Limit() tb.Limit { return l.limits.present(0).limit }

// SetLimit is Limiter.SetLimit for the bucket. The bucket remembers one limit, because it first
// moves to the limit that ends, unless it would lose by the move: its own time is ahead of the
// clock, or the limit has larger units.
func (b *Bucket) SetLimit(limit tb.Limit) error {
	return b.limits.setLimit(&b.limits.one, limit, b.clock.read, b.enter)
}

// SetLimitAt is SetLimit for a caller that has already read the clock; see Limiter.AllowAt. A
// reading before the last change counts as the reading of that change.
func (b *Bucket) SetLimitAt(t time.Time, limit tb.Limit) error {
	return b.limits.setLimit(
		&b.limits.one, limit, func() uint64 { return b.clock.instant(t) }, b.enter)
}

// enter makes a cell of m, so that no cell of an era before is left, and returns m without these
// eras. A bucket that was ahead of the beginning of m, or has a part of a unit of m, stays as it
// is: in units of m, neither its time nor its tokens can be kept. enter runs under the lock of
// SetLimit.
func (b *Bucket) enter(m *layout, t uint64) *layout {
	whole := true
	for found := false; !found; {
		_, found = visit(b, b.load(), t, func(_ *layout, c *cell, has balance) (balance, bool) {
			if m.owns(c) {
				return has, false
			}
			tokens, since := m.tokensSince(c, c.word.Load())
			whole = since <= m.begin && tokens%int64(maxScale/m.scale) == 0
			return has, whole
		})
		if !found { // before the first grant it is full
			b.fill(m, t)
		}
	}
	if !whole {
		return m
	}
	return m.ended(t)
}

// fill makes the first cell of the bucket, a full one at t, unless it has one. If m has ended since
// it was loaded, the bucket has one, which SetLimit has made.
func (b *Bucket) fill(m *layout, t uint64) {
	c := new(cell)
	c.first(m, balance{time: m.supply.at(t)}, t)
	b.cell.CompareAndSwap(nil, c)
}

// Limit returns the limit of the bucket.
func (b *Bucket) Limit() tb.Limit { return b.limits.present(0).limit }

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
