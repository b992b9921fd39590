package cas

import "github.com/seed-181794aa/ratelimit/tb"

// quickCheck and quickTake are the fast path of check and spend for a charge, because most charges
// do not wait, and find a cell with the layout m. With spend alone, TakeAll takes twice the time
// (BenchmarkTakeAll). ok reports whether they have decided.

// quickCheck returns what spend would decide at t.
func (c *cell) quickCheck(m *layout, t uint64, want *terms) (d tb.Decision, ok bool) {
	word := c.word.Load()
	if word == evicted || want.debt != nil || !m.owns(c.base) {
		return d, false
	}
	cost := want.in(m)
	delta, deficit, granted := m.step(word, m.since(c.base, m.positionAt(t)), cost)
	if !granted {
		return m.refusal(c.base, t, delta, deficit, cost), true
	}
	return m.grant(deficit), true
}

// quickTake is cell.take with the receipt of a grant.
func (c *cell) quickTake(m *layout, t uint64, want *terms) (d tb.Decision, r receipt, ok bool) {
	if want.debt != nil || !m.owns(c.base) {
		return d, r, false
	}
	cost := want.in(m)
	elapsed := m.since(c.base, m.positionAt(t))
	for {
		word := c.word.Load()
		if isSealed(word) {
			return d, r, false
		}
		delta, deficit, granted := m.step(word, elapsed, cost)
		if !granted {
			return m.refusal(c.base, t, delta, deficit, cost), r, true
		}
		if !m.fits(delta) {
			return d, r, false
		}
		next := m.pack(delta, deficit)
		if c.word.CompareAndSwap(word, next) {
			return m.grant(deficit), receipt{c, word, next}, true
		}
	}
}
