package outbound

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A key of a rule without a limit has one of three. At first it has no limit. If the server says
// one, the key has that. If the server refuses, or says that nothing is left, but not what the
// limit is, one attempt at a time may go: it takes the only token, and its answer gives that back,
// so that the next may go. For an answer that does not come, the next goes when the token is
// supplied.
var (
	unlimited = tb.Limit{Capacity: 1 << 20, Tokens: 1_000_000, Per: time.Second}
	single    = tb.Limit{Capacity: 1, Tokens: 1, Per: 10 * time.Second}
)

const (
	mostLearned    = 10_000    // keys that a rule remembers
	memoryOfLimits = time.Hour // of a limit that the server no longer says
)

// learned has the keys of a rule without a limit.
type learned struct {
	store Store
	name  string
	mu    sync.Mutex
	keys  map[string]*learnedKey
}

// learnedKey is what a server has said of a key.
type learnedKey struct {
	limiter  limiter
	isSingle atomic.Bool // the limit is single
	mu       sync.Mutex
	said     tb.Limit // zero if the server has said none
	heard    time.Time
}

// get returns what is known of a key.
func (l *learned) get(key string) *learnedKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys[key]
	if k != nil {
		return k
	}
	if len(l.keys) >= mostLearned {
		for other := range l.keys { // any one: an attempt that has it goes on
			delete(l.keys, other)
			break
		}
	}
	limiter, err := newLimiter(l.store, l.name, unlimited)
	if err != nil { // it could make the first one
		limiter, _ = newLimiter(memory{}, l.name, unlimited)
	}
	k = &learnedKey{limiter: limiter}
	l.keys[key] = k
	return k
}

// hear returns the limit that the server has said last, and forgets it after a time.
func (k *learnedKey) hear(said tb.Limit, now time.Time) tb.Limit {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case said == (tb.Limit{}) && now.Sub(k.heard) > memoryOfLimits:
		k.said = said
	case said != (tb.Limit{}):
		k.heard = now
		// A reset comes nearer, so that of one number the longest window counts.
		if said.Capacity != k.said.Capacity || said.Per > k.said.Per {
			k.said = said
		}
	}
	return k.said
}

// learn gives the key of a rule without a limit the limit that the response says. stops means that
// the server has refused, or has nothing left.
func (a *attempt) learn(p *part, notices []notice, stops bool, now time.Time) {
	said, remaining := saidOf(p.rule.Unit, notices)
	k := p.learned
	limit, before := k.hear(said, now), k.limiter.Limit()
	isSaid := limit != tb.Limit{}
	isSingle := !isSaid && (stops || k.isSingle.Load())
	switch {
	case isSingle:
		limit = single
	case !isSaid:
		limit = unlimited
	}
	if limit != before || p.isSingle {
		a.t.line.change(p, now.Add(tb.Never), func(waiting int) {
			if p.isSingle && p.rule.Usage == nil {
				_ = p.charge.Settle(0) // if the store fails, the token is supplied in time
			}
			if isSingle && p.isSingle && !stops && waiting == 0 {
				isSingle, limit = false, unlimited
			}
			k.isSingle.Store(isSingle)
			_ = k.limiter.SetLimit(limit) // of two attempts, the last one counts
		})
	}
	// What is left is in whole tokens.
	level, err := p.charge.Level(now)
	if isSaid && remaining != unknown && err == nil && level.Tokens >= remaining+1 {
		p.drain(remaining, now)
	}
}

// saidOf returns the limit of the unit that a response says, and what is left of it. Of several it
// is the one with the shortest window, but a window that is said comes before one that is guessed,
// as it does among the notices.
func saidOf(unit Unit, notices []notice) (limit tb.Limit, remaining float64) {
	remaining = unknown
	isGuess := false
	for _, n := range notices {
		tokens := int64(min(n.limit, tb.MaxCapacity, float64(n.window)))
		isBetter := limit.Per == 0 || n.isGuess == isGuess && n.window < limit.Per
		if isBetter && tokens > 0 && (n.unit == unit || n.unit == anyUnit) {
			limit = tb.Limit{Capacity: int(tokens), Tokens: tokens, Per: n.window}
			remaining, isGuess = n.remaining, n.isGuess
		}
	}
	return limit, remaining
}
