package mutex

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Snapshot yields the keys and the states of their buckets, those that will be full last first.
func (l *Limiter[K]) Snapshot() iter.Seq2[K, tb.State] {
	return func(yield func(K, tb.State) bool) {
		l.mu.Lock()
		all := slices.Clone(l.order)
		slices.SortFunc(all, func(a, b *bucket[K]) int { return cmp.Compare(b.full, a.full) })
		l.mu.Unlock()
		for _, b := range all {
			if s, ok := l.stored(b.key); ok && !yield(b.key, s) {
				return
			}
		}
	}
}

// stored returns the state of a key that is in the table, at a reading of its own.
func (l *Limiter[K]) stored(key K) (stored tb.State, ok bool) {
	now, t := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, m, s := l.find(now, key, 0)
	if b == nil {
		return stored, false
	}
	tokens := max(m.level(s, now, 0).Tokens, -deepestDebt)
	stored = tb.State{Tokens: tokens, Tier: m.tier, At: t.Round(0)}
	if s.until > 0 {
		stored.Held = stored.At.Add(time.Duration(min(s.until-now, math.MaxInt64)))
	}
	return stored, true
}

// Restore gives buckets the states that Snapshot has yielded, or changes nothing.
func (l *Limiter[K]) Restore(states iter.Seq2[K, tb.State]) error {
	type saved struct {
		key K
		tb.State
	}
	var all []saved
	for key, s := range states {
		if len(l.tiers) == 1 {
			s.Tier = 0
		}
		if err := cmp.Or(s.Validate(), l.checkTier(s.Tier)); err != nil {
			return fmt.Errorf("the state of key %v: %w", key, err)
		}
		if isNaN(key) {
			return tb.ErrInvalidKey
		}
		all = append(all, saved{key, s})
	}
	now, t := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var notFull []bucket[K]
	distinct := make(map[K]bool)
	for _, b := range all {
		m := l.tiers[b.Tier]
		if s := l.restored(m, b.State, now, t.Round(0)); m.missing(s, now) > 0 {
			notFull = append(notFull, bucket[K]{key: b.key, state: *s})
			distinct[b.key] = true
		}
	}
	if len(distinct) > l.settings.MaxKeys {
		return &tb.ConfigError{
			Field: "states", Value: fmt.Sprint(len(distinct), " buckets that are not full"),
			Range: fmt.Sprint("at most ", l.settings.MaxKeys),
		}
	}
	for _, b := range notFull {
		l.restore(now, b.key, &b.state)
	}
	return nil
}

// restore gives key's bucket a state, unless it has fewer tokens. Of two holds the later one
// remains. The lock is held.
func (l *Limiter[K]) restore(now uint64, key K, s *state) {
	m := s.limit
	b, ok := l.buckets[key]
	if !ok {
		b = &bucket[K]{key: key}
		if _, ok := l.makeRoom(now, true); !ok {
			return
		}
	} else {
		next := *b.in(m, now)
		after, later := &next, s.until > next.until
		if later {
			next.holdTo(s.until)
			after = next.heldIn(m)
		}
		switch {
		case m.missing(s, now) > m.missing(after, now):
			s.until = next.until
		case later:
			s = &next
		default:
			return
		}
	}
	s.moves = b.moves + 1 // Cancel of an earlier grant gives nothing back
	l.put(b, s)
}

// restored returns the state under m of a bucket that had the state s. It has been refilled at the
// present rate since.
func (l *Limiter[K]) restored(m *limit, s tb.State, now uint64, wall time.Time) *state {
	units := int64(math.Round(s.Tokens * float64(m.scale)))
	at := min(l.instant(s.At), now)
	if !s.Held.IsZero() {
		left := min(s.Held.Sub(s.At), s.Held.Sub(wall)) // no longer if the wall clock was set back
		if until := m.after(now, left); until > max(now, m.begin) {
			b := m.stateOf(units, m.supply(until))
			b.until = until
			b.noteDebt()
			return b
		}
		at = min(l.instant(s.Held), now)
	}
	units += m.supplied(m.begin-min(m.begin, at)).above(wide{}, mostDebt)
	return m.stateOf(units, m.supply(max(at, m.begin)))
}

// missing returns the units that a bucket lacks at now to be full.
func (l *limit) missing(b *state, now uint64) int64 {
	return b.time.plus(uint64(l.capacity-b.tokens)).above(l.supply(now), math.MaxInt64)
}
