package mutex

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// hold is a hold of a bucket: nothing is granted before the instant until, and at that instant the
// bucket is empty, or in debt. Neither depends on a limit.
type hold struct {
	until uint64 // 0 if the bucket is not held
	debt  int64  // at that instant, in millionths of a token
}

// Hold grants nothing of key's bucket before a time, at which the bucket is empty and refills.
func (l *Limiter[K]) Hold(_ context.Context, key K, until time.Time) error {
	if isNaN(key) {
		return tb.ErrInvalidKey
	}
	now, t := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, m, s := l.find(now, key, 0)
	then := m.after(now, until.Sub(t))
	if then <= max(now, m.begin) {
		return nil
	}
	if b == nil {
		if b = l.add(now, key); b == nil {
			return tb.ErrTableFull
		}
	}
	if s.until < then {
		held := *s
		held.holdTo(then)
		l.put(b, &held)
	}
	return nil
}

// holdTo holds a bucket to an instant, or to its own time, if that is a later reading. Cancel of an
// earlier grant gives nothing back.
func (s *state) holdTo(until uint64) {
	m := s.limit
	if !s.inDebt && m.supply(until).less(s.time) {
		until = min(m.timeOf(s.time.plus(1))-1, m.end)
	}
	s.hold = hold{until: until}
	s.noteDebt()
	s.moves++
}

// noteDebt notes the debt of a held bucket behind its hold, unless it is as before. Other tokens
// are lost.
func (s *state) noteDebt() {
	if s.until == 0 {
		return
	}
	m := s.limit
	if was := s.heldIn(m); s.time == was.time && s.inDebt == was.inDebt {
		return // so that no change of the limit rounds it
	}
	s.debt = 0
	if s.inDebt {
		s.debt = m.micros(s.time.above(m.supply(s.until), deepestDebt*m.scale))
	}
}

// heldIn returns the state of a held bucket at the end of its hold, under l.
func (s *state) heldIn(l *limit) *state {
	held := l.stateWith(-s.debt, l.supply(s.until))
	held.moves = s.moves + 1 // each change moves it
	return held
}
