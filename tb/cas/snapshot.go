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
		for _, c := range l.byStamp() {
			key := l.table.KeyOf(c)
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

// byStamp returns the cells of the table, those with the latest stamps first.
func (l *Limiter[K]) byStamp() []*cell {
	type stamped struct {
		cell  *cell
		stamp uint64
	}
	cells := l.table.Values()
	all := make([]stamped, len(cells))
	for i, c := range cells {
		stamp, _, _ := l.evictor.Stamp(c)
		all[i] = stamped{c, stamp}
	}
	slices.SortFunc(all, func(a, b stamped) int { return cmp.Compare(b.stamp, a.stamp) })
	for i := range all {
		cells[i] = all[i].cell
	}
	return cells
}

// Restore gives buckets the states that Snapshot has yielded. It returns an error, and changes
// nothing, if a state or a key is invalid, or if more buckets are not full than the table can hold.
func (l *Limiter[K]) Restore(states iter.Seq2[K, tb.State]) error {
	type entry struct {
		key   K
		state tb.State
	}
	var all []entry
	notFull := make(map[K]struct{})
	now := l.clock.time()
	t, wall := l.clock.instant(now), now.Round(0)
	for key, s := range states {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("the state of key %v: %w", key, err)
		}
		if isNaN(key) {
			return tb.ErrInvalidKey
		}
		if l.limits.tiers != nil {
			if err := l.limits.checkTier(s.Tier); err != nil {
				return fmt.Errorf("the state of key %v: %w", key, err)
			}
		}
		m := l.restoredAt(key, s).layoutOf(nil)
		at, until := l.clock.ofState(s, t, wall)
		if b := m.restored(s, at, until, t); b.missing(m.supply.at(t)) > 0 {
			all = append(all, entry{key, s})
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
		l.restore(t, wall, e.key, e.state)
	}
	return nil
}

// ofState returns the instant at which a bucket had its state, and the instant until which it is
// held at t, or 0. wall is t by the wall clock. If that was set back, a hold is no longer than it
// was.
func (c *clock) ofState(s tb.State, t uint64, wall time.Time) (at, until uint64) {
	if s.Held.IsZero() {
		return c.instant(s.At), 0
	}
	if left := min(s.Held.Sub(s.At), s.Held.Sub(wall)); left > 0 {
		until = t + min(uint64(left), endOf(c.firstInstant)-t)
	}
	return c.instant(s.Held), until
}

// restoredAt returns the place of a key that gets the state s.
func (l *Limiter[K]) restoredAt(key K, s tb.State) place[K] {
	if l.limits.tiers == nil {
		return l.placeOf(key)
	}
	return place[K]{l, key, s.Tier, true}
}

// restore gives key's bucket a state at t, unless it has fewer tokens. Of two holds the later one
// remains.
func (l *Limiter[K]) restore(t uint64, wall time.Time, key K, state tb.State) {
	p := l.restoredAt(key, state)
	at, until := l.clock.ofState(state, t, wall)
	for {
		_, found := visit(p, p.load(), t, func(m *layout, c *cell, has balance) (balance, bool) {
			b, next, now := m.restored(state, at, until, t), has, m.supply.at(t)
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
		b := m.restored(state, at, until, t)
		debtFrom := m.supply.at(b.debtFrom(t))
		if b.deficit > m.capacity && l.limits.owe(m, b.missing(debtFrom)) {
			continue
		}
		x := m.cellOf(b, t)
		_, _, result := l.table.Insert(key, t, 0, x.owner, func(c *cell) uint64 {
			c.init(x)
			return m.fullAt(b)
		})
		if result != lru.Found {
			return
		}
	}
}
