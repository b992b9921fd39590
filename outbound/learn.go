package outbound

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A key of a rule without a limit has this one until the server says another. If the server
// refuses, or says that nothing is left, but not what the limit is, one attempt at a time may go.
var unlimited = tb.Limit{Capacity: 1 << 20, Tokens: 1_000_000, Per: time.Second}

const (
	memoryOfLimits = time.Hour        // of a limit that the server no longer says
	longestTurn    = 10 * time.Second // of an attempt whose answer does not come
)

// learned is what the server has said of a key without a limit.
type learned struct {
	turn     chan struct{} // is full while an attempt has its turn
	isSingle atomic.Bool   // an attempt needs its turn
	limit    tb.Limit      // under key.mu
	heard    time.Time
}

// queue waits for the turns of the attempt. It reports whether other attempts have gone before:
// then the server may have said something else meanwhile.
func (a *attempt) queue() (queued bool, err error) {
	for i := range a.parts {
		p := &a.parts[i]
		if !p.key.isSingle.Load() || p.endTurn != nil {
			continue
		}
		turn, ctx := p.key.turn, a.r.Context()
		select {
		case turn <- struct{}{}:
		default:
			queued = true
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		if p.endTurn = sync.OnceFunc(func() { <-turn }); !p.key.isSingle.Load() {
			p.endTurn()
		}
	}
	return queued, nil
}

// learn gives the key of a rule without a limit the limit that the response says. stops means that
// the server has refused, or has nothing left.
func (a *attempt) learn(p *part, x *answer, stops bool, now time.Time) {
	k := p.key
	said, left := x.limitOf(p.rule.Unit)
	limit := k.hear(said, now)
	isLimited := limit != unlimited
	isLast := p.endTurn != nil && k.users.Load() == 1
	k.isSingle.Store(!isLimited && (stops || k.isSingle.Load() && !isLast))
	if limit != k.limiter.Limit() {
		// What waits takes anew. Another answer may have said a limit meanwhile.
		k.change(now.Add(tb.Never), func() { _ = k.limiter.SetLimit(k.hear(unlimited, now)) })
	}
	if !isLimited || left == unknown {
		return
	}
	k.takes.Lock() // so that of answers which come at the same time, one drains
	defer k.takes.Unlock()
	if level, err := p.charge.Level(now); err == nil && level.Tokens >= left+1 { // in whole tokens
		p.drain(left, now)
	}
}

// hear returns the limit that the server has said last, and forgets it after a time.
func (k *key) hear(said tb.Limit, now time.Time) tb.Limit {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case said != unlimited:
		k.heard = now
		// A reset comes nearer, so that of one number the longest window counts.
		if said.Capacity != k.limit.Capacity || said.Per > k.limit.Per {
			k.limit = said
		}
	case now.Sub(k.heard) > memoryOfLimits:
		k.limit = unlimited
	}
	return k.limit
}

// limitOf returns the limit of a unit that a response says, or unlimited, and what is left of it.
// Of several it is the one with the shortest window.
func (x *answer) limitOf(unit Unit) (limit tb.Limit, left float64) {
	limit, left = unlimited, unknown
	for _, n := range x.notices {
		tokens := int64(min(n.limit, tb.MaxCapacity, float64(n.window)))
		isBetter := limit == unlimited || n.window < limit.Per
		if isBetter && tokens > 0 && (n.unit == unit || n.unit == anyUnit) {
			limit, left = tb.Limit{Capacity: int(tokens), Tokens: tokens, Per: n.window}, n.remaining
		}
	}
	return limit, left
}
