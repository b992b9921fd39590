package cas

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Snapshot returns an iterator over the keys of the table and the states of their buckets, those
// that are full last first.
func (l *Limiter[K]) Snapshot() iter.Seq2[K, tb.State] {
	return func(yield func(K, tb.State) bool) {
		for _, s := range l.byStamp() {
			key := l.table.KeyOf(s.cell)
			at := l.clock.time()
			t := l.clock.instant(at)
			c, m, has, _, err := look(l.placeOf(key), t)
			if c == nil || err != nil {
				continue
			}
			tokens := max(m.level(has, t, 0).Tokens, -deepestDebt)
			s := tb.State{Tokens: tokens, At: at.Round(0), Tier: tierOf(m.owner)}
			if has.until > 0 {
				s.Held = s.At.Add(time.Duration(min(has.until-t, math.MaxInt64)))
			}
			if !yield(key, s) {
				return
			}
		}
	}
}

type stamped struct {
	cell  *cell
	stamp uint64
}

// byStamp returns the cells of the table, those with the latest stamps first.
func (l *Limiter[K]) byStamp() []stamped {
	cells := l.table.Values()
	all := make([]stamped, len(cells))
	for i, c := range cells {
		all[i].cell = c
		all[i].stamp, _, _ = l.evictor.Stamp(c)
	}
	slices.SortFunc(all, func(a, b stamped) int { return cmp.Compare(b.stamp, a.stamp) })
	return all
}

// Restore gives buckets the states that Snapshot has yielded. It returns an error, and changes
// nothing, if a state or a key is invalid, or if more buckets are not full than the table can hold.
func (l *Limiter[K]) Restore(states iter.Seq2[K, tb.State]) error {
	type entry struct {
		place[K]
		saved
	}
	var all []entry
	notFull := make(map[K]struct{})
	now := l.clock.time()
	t := l.clock.instant(now)
	for key, s := range states {
		err := s.Validate()
		if err == nil && l.limits.tiers != nil {
			err = l.limits.checkTier(s.Tier)
		}
		if err != nil {
			return fmt.Errorf("the state of key %v: %w", key, err)
		}
		if isNaN(key) {
			return tb.ErrInvalidKey
		}
		p := place[K]{Limiter: l, key: key, tier: s.Tier, enters: true}
		e := entry{p, l.clock.saved(s, t, now.Round(0))}
		if m := e.layoutOf(nil); m.restored(e.saved, t).missing(m.supply.at(t)) > 0 {
			all = append(all, e)
			notFull[key] = struct{}{}
		}
	}
	if most := l.table.Max(); len(notFull) > most {
		return &tb.ConfigError{
			Field: "states", Value: fmt.Sprint(len(notFull), " buckets that are not full"),
			Range: fmt.Sprint("at most ", most),
		}
	}
	for _, e := range all {
		e.restore(e.saved, t)
	}
	return nil
}

// saved returns the state s at t, which is wall by the wall clock. If that was set back, a hold is
// no longer than it was.
func (c *clock) saved(s tb.State, t uint64, wall time.Time) saved {
	if s.Held.IsZero() {
		return saved{tokens: s.Tokens, at: c.instant(s.At)}
	}
	left := uint64(max(0, min(s.Held.Sub(s.At), s.Held.Sub(wall))))
	return saved{s.Tokens, c.instant(s.Held), t + min(left, endOf(c.firstInstant)-t)}
}

// restore gives the bucket of p a state at t, unless it has fewer tokens. Of two holds the later
// one remains.
func (p place[K]) restore(s saved, t uint64) {
	for {
		_, found := visit(p, p.load(), t, func(m *layout, c *cell, has balance) (balance, bool) {
			b, next, now := m.restored(s, t), has, m.supply.at(t)
			if b.until > has.until {
				next = m.heldTo(has, b.until)
			}
			if next.missing(now) < b.missing(now) {
				b.until = next.until
				next = b
			}
			if next == has {
				return has, false
			}
			c.seal() // so that Cancel of an earlier grant gives nothing back
			return next, true
		})
		if found {
			return
		}
		m := p.layoutOf(nil)
		b := m.restored(s, t)
		debtFrom := m.supply.at(b.debtFrom(t))
		if b.deficit > m.capacity && p.limits.owe(m, b.missing(debtFrom)) {
			continue
		}
		x := m.cellOf(b, t)
		_, _, result := p.table.Insert(p.key, p.at, t, t-min(t, idleTime), x.owner, func(c *cell) uint64 {
			c.init(x)
			return m.fullAt(b)
		})
		if result != lru.Found {
			return
		}
	}
}
