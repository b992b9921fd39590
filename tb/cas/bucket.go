package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// bucket is the state of one key. See the package documentation for the word.
type bucket struct {
	word atomic.Uint64
	base uint64 // in blocks; immutable
}

// state says whether a decision was reached, or what stood in its way.
type state int

const (
	decided state = iota
	moved         // the delta ran out: only a successor can grant the call
	gone          // the bucket was evicted
)

// set gives a bucket that nobody else has yet its first state.
func (b *bucket) set(base, word uint64) *bucket {
	b.base = base
	b.word.Store(word)
	return b
}

// take decides on a call of the given cost, and returns the word that it left or found.
// The word is reloaded for as long as other callers win the race for it, each time
// because one of them was granted. A word that is sealed because the delta ran out still
// refuses what it lacks.
func (b *bucket) take(m *meter, t uint64, cost uint64) (tb.Decision, uint64, state) {
	blocks, rest := m.split(m.at(t))
	at := m.since(b.base, blocks, rest)
	for {
		word := b.word.Load()
		if word == evicted {
			return tb.Decision{}, word, gone
		}
		delta, deficit, granted := m.step(word&^sealBit, at, cost)
		if !granted {
			return m.refusal(b.base, t, delta, deficit, cost), word, decided
		}
		if isSealed(word) {
			return tb.Decision{}, word, moved
		}
		if !m.fits(delta) {
			b.word.CompareAndSwap(word, word|sealBit)
			continue
		}
		if next := m.pack(delta, deficit); b.word.CompareAndSwap(word, next) {
			return m.grant(deficit), next, decided
		}
	}
}

// giveBack undoes a grant of the given cost that left the given word, as far as that
// cannot make the bucket fuller than it would be without the grant.
//
// Let F be the position at which the bucket is full again. A grant of c at s makes it
// max(F, s) + c; so after grants c₁ at s₁, …, cₙ at sₙ it is the greatest of F + c₁ + … +
// cₙ and, for each i, sᵢ + cᵢ + … + cₙ. Without grant k the sums that had cₖ in them are
// less by cₖ. Those that had not, of i > k, are no more than the sum of k itself less cₖ,
// plus sᵢ − sₖ. So F is at least cₖ − (s − sₖ) less, where s is the time of the bucket
// now. That much is given back: all of the cost, if no later grant has come between.
//
// The same holds if others are undone, in any order: F is at least what it would be without
// those undone so far, which is the F of the argument, and stays so as more is granted. Nor
// does F fall behind s, for it would not without all of the grants.
func (b *bucket) giveBack(m *meter, word, cost uint64) {
	then, _ := m.unpack(word)
	for {
		word := b.word.Load()
		if isSealed(word) {
			return
		}
		delta, deficit := m.unpack(word)
		deficit -= cost - min(cost, delta-then)
		if b.word.CompareAndSwap(word, m.pack(delta, deficit)) {
			return
		}
	}
}

// peek returns what take would decide on the given word.
func (b *bucket) peek(m *meter, word, t, cost uint64) tb.Decision {
	blocks, rest := m.split(m.at(t))
	delta, deficit, granted := m.step(word&^sealBit, m.since(b.base, blocks, rest), cost)
	if !granted {
		return m.refusal(b.base, t, delta, deficit, cost)
	}
	return m.grant(deficit)
}

// level returns how full the bucket is with the given word.
func (b *bucket) level(m *meter, word, t uint64) tb.Level {
	blocks, rest := m.split(m.at(t))
	delta, deficit, _ := m.step(word&^sealBit, m.since(b.base, blocks, rest), 0)
	units := m.capacity - deficit
	l := tb.Level{Tokens: float64(units) / float64(m.scale)}
	if deficit > 0 {
		l.NextToken = m.waitFor(b.base, delta+m.scale-units%m.scale, t)
		l.Full = m.waitFor(b.base, delta+deficit, t)
	}
	return l
}

// successor returns what b, which is sealed, becomes by granting a call of the given cost
// at t, and the answer to that call. Whoever puts it in b's place has been granted the
// call in the same step: a move that was no grant would have to keep both b's own time,
// for those who come late, and a base from which t can be reached.
func (b *bucket) successor(m *meter, t, cost uint64) (base, word uint64, d tb.Decision) {
	blocks, rest := m.split(m.at(t))
	now := m.since(b.base, blocks, rest)
	delta, deficit, _ := m.step(b.word.Load()&^sealBit, now, cost)
	if blocks < b.base || delta != now { // b's own time is later
		blocks, rest = m.split(m.position(b.base, delta))
	}
	return blocks, m.pack(rest, deficit), m.grant(deficit)
}

// retire ends the bucket whatever its state, and returns its last word.
func (b *bucket) retire() uint64 { return b.word.Swap(evicted) }

// grant and refusal are the answers of a bucket that lacks deficit units once the
// cost is included.
func (m *meter) grant(deficit uint64) tb.Decision {
	return tb.Decision{Allowed: true, Remaining: m.tokensIn(m.capacity - deficit)}
}

func (m *meter) refusal(base, t, delta, deficit, cost uint64) tb.Decision {
	d := tb.Decision{RetryAfter: tb.Never, Remaining: m.tokensIn(m.capacity + cost - deficit)}
	if cost <= m.capacity {
		d.RetryAfter = m.waitFor(base, delta+deficit-m.capacity, t)
	}
	return d
}

// stranger is the answer of a bucket that is full.
func (m *meter) stranger(cost uint64) tb.Decision {
	if cost > m.capacity {
		return tb.Decision{RetryAfter: tb.Never, Remaining: m.tokensIn(m.capacity)}
	}
	return m.grant(cost)
}
