package interleaving

import "github.com/seed-181794aa/ratelimit/proof/modelcheck"

// turn is a step of a thread. Some steps have two outcomes. An undo or a Cancel may be lost,
// because the bucket has moved. A Cancel or Settle may return before the call that has the effect.
// A look at a new key in a full table may miss that the key is refused. A call may be decided by
// the limit before the latest SetLimit, if it was under way during it.
type turn struct {
	thread int
	other  bool // the step has its second outcome
}

// continuations returns the sequences in which thread makes the next step after s. It is a step of
// a call of the history, of which made calls of each thread are made.
func (m *oracle) continuations(
	s *sequence, thread int, history [][]modelcheck.Returned, made []int,
) []*sequence {
	next := []*sequence{m.then(s, turn{thread, false})}
	c := history[thread][made[thread]]
	other := m.full
	switch op := c.Name.(call).op; {
	case m.scenario.shared && (op == cancel || op == settle):
		other = corrected(history, made, thread)
	case s.phase[thread] == undoing || op == cancel:
		other = other || m.scenario.moves
	default:
		other = other || m.limitChanged(c, made)
	}
	if other {
		next = append(next, m.then(s, turn{thread, true}))
	}
	return next
}

// corrected reports whether the next call of thread overlaps a call of another thread that corrects
// the same reservation, and that is made later. Then the other call has the effect.
func corrected(history [][]modelcheck.Returned, made []int, thread int) bool {
	for t, calls := range history {
		for _, c := range calls[made[t]:] {
			op := c.Name.(call).op
			if t != thread && c.After[thread] <= made[thread] && (op == cancel || op == settle) {
				return true
			}
		}
	}
	return false
}

// limitChanged reports whether a SetLimit is made that had not returned before c began.
func (m *oracle) limitChanged(c modelcheck.Returned, made []int) bool {
	for t, calls := range m.scenario.threads() {
		for _, set := range calls[min(c.After[t], made[t]):made[t]] {
			if set.setsLimit() {
				return true
			}
		}
	}
	return false
}
