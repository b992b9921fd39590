package cas

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Snapshot returns an iterator over the keys of the table and the states of their buckets, those
// that are full last first.
func (l *Limiter[K]) Snapshot() iter.Seq2[K, tb.State] {
	return func(yield func(K, tb.State) bool) {
		for _, c := range l.byStamp() {
			key := l.table.KeyOf(c)
			t, at := l.clock.readWall()
			c, m, has, _, err := look(l.placeOf(key), t)
			if c == nil || err != nil {
				continue
			}
			tokens := max(m.level(has, t).Tokens, -deepestDebt)
			if !yield(key, tb.State{Tokens: tokens, At: at, Tier: tierOf(m.owner)}) {
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
	t, _ := l.clock.readWall()
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
		if b := m.restored(s, l.clock.instant(s.At), t); b.missing(m.supply.at(t)) > 0 {
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
		l.restore(t, e.key, e.state)
	}
	return nil
}

// restoredAt returns the place of a key that gets the state s.
func (l *Limiter[K]) restoredAt(key K, s tb.State) place[K] {
	if l.limits.tiers == nil {
		return l.placeOf(key)
	}
	return place[K]{l, key, s.Tier, true}
}

// restore gives key's bucket a state at t, unless it has fewer tokens.
func (l *Limiter[K]) restore(t uint64, key K, state tb.State) {
	p, at := l.restoredAt(key, state), l.clock.instant(state.At)
	for {
		_, found := visit(p, p.load(), t, func(m *layout, c *cell, has balance) (balance, bool) {
			b, now := m.restored(state, at, t), m.supply.at(t)
			if has.missing(now) >= b.missing(now) {
				return has, false
			}
			c.seal() // so that Cancel of an earlier grant gives nothing back
			return b, true
		})
		if found {
			return
		}
		m := p.layoutOf(nil)
		b := m.restored(state, at, t)
		if b.deficit > m.capacity && l.limits.owe(m, b.missing(m.supply.at(t))) {
			continue
		}
		_, _, result := l.table.Insert(key, t, 0, m.owner, func(c *cell) uint64 {
			c.first(m, b, t)
			return m.fullAt(b)
		})
		if result != lru.Found {
			return
		}
	}
}
