package outbound

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// unlimited is the limit of a key of a rule without one, until the server says another.
var unlimited = tb.Limit{Capacity: 1 << 20, Tokens: 250_000, Per: time.Second}

const (
	memoryOfLimits = time.Hour        // of a limit that the server no longer says
	longestTurn    = 10 * time.Second // of an attempt whose answer does not come
)

// obey does what the header of a response says, and reports whether it is a refusal.
func (a *attempt) obey(response *http.Response) bool {
	x := read(response.StatusCode, response.Header, a.t.learns)
	a.settle(response, x.isRefusal)
	if len(x.notices) == 0 && !x.isRefusal && !a.t.learns {
		return false
	}
	now := time.Now()
	none, pauses := [anyUnit + 1]time.Duration{}, x.pauses(a.t.maxPause)
	for i := range a.parts {
		if p := &a.parts[i]; p.rule.learns && p.charge != nil {
			a.learn(p, &x, x.isRefusal || pauses != none, now)
		}
	}
	if x.isRefusal {
		p, _ := a.slowestOf(anyUnit, now)
		a.t.refused(a.r, p.rule, response)
	}
	for unit, pause := range pauses {
		if pause > 0 {
			a.pause(Unit(unit), pause, x.isRefusal, now)
		}
	}
	return x.isRefusal
}

// slowestOf returns the part whose bucket would let the same cost wait longest, and that wait. If
// rules have the unit, it is a part in one of them.
func (a *attempt) slowestOf(unit Unit, now time.Time) (slowest *part, wait time.Duration) {
	wait = math.MinInt64
	for i := range a.parts {
		p := &a.parts[i]
		if d := a.waitOf(p, now); d > wait && (p.rule.Unit == unit || !a.t.units[unit]) {
			slowest, wait = p, d
		}
	}
	return slowest, wait
}

// waitOf returns how long the bucket of p would let its cost wait. It is not above 0 if the tokens
// are there.
func (a *attempt) waitOf(p *part, now time.Time) time.Duration {
	if p.charge == nil { // the store has failed
		return 0
	}
	level, err := p.charge.Level(now)
	if err != nil {
		return 0
	}
	wait := level.NextToken +
		timeOf(p.limiter.Limit(), p.charged-max(math.Floor(level.Tokens), 0)-1)
	if a.t.isShared {
		wait -= now.Sub(p.taken) // the level may be the one of then
	}
	return wait
}

// pause lets one attempt go at the end of a pause, and none before. If the bucket's own wait covers
// the pause, nothing changes, unless the server has refused: then what waits is too early. Seconds
// are rounded up, so that a server at its limit says a second if less is left.
func (a *attempt) pause(unit Unit, wait time.Duration, isRefusal bool, now time.Time) {
	p, own := a.slowestOf(unit, now)
	isCovered := own >= wait || own > 0 && wait%time.Second == 0 && own > wait-time.Second
	if isCovered && !isRefusal {
		return
	}
	end, isNew := now.Add(wait), false
	p.takes.Lock()
	isLater := end.After(*p.paused.Load())
	if isLater {
		p.paused.Store(&end)
	}
	a.t.move(p.key, end, func() {
		if isNew = a.waitOf(p, now) < wait; isNew {
			a.leave(p, p.charged, wait, now)
		}
	})
	p.takes.Unlock()
	if isLater && isNew {
		a.t.held(a.r, p.rule, wait)
		(&attempt{t: a.t, r: a.r}).renew(&part{key: p.key, charged: p.charged}, end)
	}
}

// renew holds the bucket of p again and again if it is not held until the end of a pause. What
// waits takes anew then.
func (a *attempt) renew(p *part, end time.Time) {
	most := p.longestHold()
	left := time.Until(end) - most
	if left <= 0 {
		return
	}
	time.AfterFunc(min(left, most/2), func() {
		now := time.Now()
		p.takes.Lock()
		a.t.move(p.key, now.Add(tb.Never), func() { a.leave(p, p.charged, end.Sub(now), now) })
		p.takes.Unlock()
		a.renew(p, end)
	})
}

// learn gives the key of a rule without a limit the limit that the response says. stops means that
// the server has refused, or has nothing left.
func (a *attempt) learn(p *part, x *answer, stops bool, now time.Time) {
	p.takes.Lock() // so that of answers which come at the same time, one drains
	defer p.takes.Unlock()
	limit := p.limiter.Limit()
	said, left := x.limitOf(p.rule.Unit, a.t.maxPause)
	switch {
	case said != unlimited:
		p.heard = now
		// A reset comes nearer, so that of one number the longest window counts if none is said.
		isSaid := x.header["Ratelimit-Policy"] != nil
		if isSaid || said.Capacity != limit.Capacity || said.Per > limit.Per {
			limit = said
		}
	case now.Sub(p.heard) > memoryOfLimits:
		limit = unlimited
	}
	isLast := p.endTurn != nil && p.users.Load() == 1
	p.isSingle.Store(limit == unlimited && (stops || p.isSingle.Load() && !isLast))
	has := p.spend(0, now) // at the rate until now, with what waits for another key
	if level, err := p.charge.Level(now); err == nil && len(a.parts) == 1 {
		has = level.Tokens
	}
	if limit != p.limiter.Limit() { // what waits takes anew, of what is left
		a.t.move(p.key, now.Add(tb.Never), func() {
			_ = p.limiter.SetLimit(limit)
			a.leave(p, left, 0, now)
		})
	} else if has >= left+1 { // in whole tokens, also what waits
		p.spend(has-left, now)
		a.t.move(p.key, now, func() { a.leave(p, left, 0, now) })
	}
}

// leave leaves the bucket of p a number of tokens after a time: it is held, or if they take longer
// to be supplied, it has at most the tokens that are missing then. It is not held longer than an
// attempt may wait for the supply: renew holds it for the rest of a pause.
func (a *attempt) leave(p *part, tokens float64, after time.Duration, now time.Time) {
	limit := p.limiter.Limit()
	held := min(after-timeOf(limit, tokens), p.longestHold())
	if until := now.Add(held); held > 0 {
		ctx := context.WithoutCancel(a.r.Context())
		if err := p.limiter.Hold(ctx, p.text, until); err != nil {
			a.t.failed(a.r, err)
		}
		return
	}
	tokens -= tokensIn(limit, after)
	c, err := p.limiter.Charge(p.text, 1)
	if err != nil {
		return
	}
	if level, err := c.Level(now); err == nil && level.Tokens > tokens {
		if c, err = p.limiter.Charge(p.text, level.Tokens-tokens); err == nil {
			_, _ = c.Take(now)
		}
	}
}

func (k *key) longestHold() time.Duration {
	limit := k.limiter.Limit()
	if k.rule.learns {
		limit = unlimited // which the server may say meanwhile
	}
	return timeOf(limit, tb.MaxCapacity)
}

// timeOf returns the time, rounded up, in which a limit supplies a number of tokens.
func timeOf(l tb.Limit, tokens float64) time.Duration {
	const most = 1 << 62
	d := math.Ceil(tokens * float64(l.Per) / float64(l.Tokens))
	return time.Duration(min(max(d, -most), most))
}

func tokensIn(l tb.Limit, d time.Duration) float64 {
	return float64(l.Tokens) * float64(d) / float64(l.Per)
}
