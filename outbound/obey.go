package outbound

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// obey does what the header of a response says, and reports whether it is a refusal.
func (a *attempt) obey(response *http.Response) bool {
	x := read(response.StatusCode, response.Header, a.t.learns)
	a.settle(response, x.isRefusal)
	if len(x.notices) == 0 && !x.isRefusal && !a.t.learns {
		return false
	}
	now := time.Now()
	var none, pauses [anyUnit + 1]time.Duration // by unit
	for _, n := range x.notices {
		if n.remaining == 0 || n.remaining == infinite && x.isRefusal {
			wait := x.retry
			if wait == unknown {
				wait = n.wait
			}
			pauses[n.unit] = max(pauses[n.unit], min(wait, a.t.maxPause))
		}
	}
	if pauses == none {
		pauses[anyUnit] = max(0, min(x.retry, a.t.maxPause))
	}
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
		timeOf(p.key.limiter.Limit(), p.charged-max(math.Floor(level.Tokens), 0)-1)
	if a.t.isShared {
		wait -= now.Sub(a.taken) // the level may be the one of then
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
	end := now.Add(wait)
	isNew := false
	p.key.takes.Lock()
	a.t.move(p.key, end, func() {
		if isNew = a.waitOf(p, now) < wait; isNew {
			a.hold(p, wait, now)
		}
	})
	p.key.takes.Unlock()
	if isNew {
		p.key.paused.Store(end.UnixNano())
		a.t.held(a.r, p.rule, wait)
	}
}

// hold empties the bucket of p, so that it has the cost of p after a time.
func (a *attempt) hold(p *part, d time.Duration, now time.Time) {
	limit := p.key.limiter.Limit()
	until := now.Add(d - timeOf(limit, p.charged))
	if !until.After(now) { // the cost takes longer to be supplied
		p.drain(p.charged-tokensIn(limit, d), now)
		return
	}
	ctx := context.WithoutCancel(a.r.Context())
	if err := p.key.limiter.Hold(ctx, p.key.text, until); err != nil {
		a.t.failed(a.r, err)
	}
}

// drain leaves at most a number of tokens in the bucket.
func (p *part) drain(tokens float64, now time.Time) {
	c, err := p.key.limiter.Charge(p.key.text, 1)
	if err != nil {
		return
	}
	if level, err := c.Level(now); err == nil && level.Tokens > tokens {
		if c, err = p.key.limiter.Charge(p.key.text, level.Tokens-tokens); err == nil {
			_, _ = c.Take(now)
		}
	}
}

// timeOf returns the time, rounded up, in which a limit supplies a number of tokens. It is negative
// for a negative number.
func timeOf(l tb.Limit, tokens float64) time.Duration {
	const most = 1 << 62
	d := math.Ceil(tokens * float64(l.Per) / float64(l.Tokens))
	return time.Duration(min(max(d, -most), most))
}

// tokensIn returns what a limit supplies in d.
func tokensIn(l tb.Limit, d time.Duration) float64 {
	return float64(l.Tokens) * float64(d) / float64(l.Per)
}
