package outbound

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

// obey does what the header of a response says, and reports whether it is a refusal.
func (a *attempt) obey(response *http.Response) bool {
	x := read(response.StatusCode, response.Header, a.t.learns, a.notices)
	a.notices = x.notices
	a.settle(response, x.isRefusal)
	if len(x.notices) == 0 && !x.isRefusal && !a.t.learns {
		return false
	}
	now := time.Now()
	pauses := x.pauses()
	for i := range a.parts {
		if p := &a.parts[i]; p.learned != nil && p.charge != nil {
			a.learn(p, x.notices, x.isRefusal || pauses != noPause, now)
		}
	}
	if x.isRefusal {
		p, _ := a.slowestOf(anyUnit, now)
		a.t.refused(a.r, p.rule, response)
	}
	for unit, w := range pauses {
		if w.wait > 0 {
			a.pause(Unit(unit), w, now)
		}
	}
	return x.isRefusal
}

// pauses returns the pauses that a response orders, by unit.
func (x *answer) pauses() (all [anyUnit + 1]pause) {
	for _, n := range x.notices {
		if n.remaining != 0 && !(n.remaining == unknown && x.isRefusal) {
			continue
		}
		if x.retry != unknown {
			n.wait = x.retry
		}
		if n.wait > all[n.unit].wait {
			all[n.unit] = pause{n.wait, n.isWhole, x.isRefusal}
		}
	}
	if all == noPause && x.retry > 0 {
		all[anyUnit] = pause{wait: x.retry, isRefusal: x.isRefusal}
	}
	return all
}

var noPause [anyUnit + 1]pause

// pause is how long a server says that no attempt should come.
type pause struct {
	wait      time.Duration
	isWhole   bool // it is rounded to seconds
	isRefusal bool
}

// slowestOf returns the part whose bucket would let the same cost wait longest, and that wait. If
// parts have the unit, it is one of them.
func (a *attempt) slowestOf(unit Unit, now time.Time) (slowest *part, wait time.Duration) {
	for i := range a.parts {
		p := &a.parts[i]
		d, isOf := a.waitOf(p, now), p.rule.Unit == unit
		isBetter := slowest != nil && slowest.rule.Unit == unit
		if slowest == nil || isOf && !isBetter || isOf == isBetter && d > wait {
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
	if _, ok := p.limiter.(memoryLimiter); !ok {
		wait -= now.Sub(a.taken) // the level of another process is the one of then
	}
	return wait
}

// pause lets one attempt go at the end of a pause, and none before. If the bucket's own wait covers
// the pause, nothing changes, unless the server has refused: then what waits is too early. Seconds
// are rounded up, so that a server at its limit says a second if less is left.
func (a *attempt) pause(unit Unit, w pause, now time.Time) {
	w.wait = min(w.wait, a.t.maxPause)
	p, own := a.slowestOf(unit, now)
	isCovered := own >= w.wait || own > 0 && w.isWhole && own > w.wait-time.Second
	if isCovered && !w.isRefusal || w.wait <= 0 {
		return
	}
	isNew := false
	a.t.line.change(p, now.Add(w.wait), func(int) {
		if isNew = a.waitOf(p, now) < w.wait; isNew {
			a.hold(p, w.wait, now)
		}
	})
	if isNew {
		a.t.held(a.r, p.rule, w.wait)
	}
}

// hold empties the bucket of p, so that it has the cost of p after a time.
func (a *attempt) hold(p *part, d time.Duration, now time.Time) {
	limit := p.limiter.Limit()
	until := now.Add(d - timeOf(limit, p.charged))
	if !until.After(now) { // the cost takes longer to be supplied
		p.drain(p.charged-tokensIn(limit, d), now)
		return
	}
	ctx := context.WithoutCancel(a.r.Context())
	if err := p.limiter.Hold(ctx, p.key, until); err != nil {
		a.t.failed(a.r, err)
	}
}

// drain leaves at most a number of tokens in the bucket.
func (p *part) drain(tokens float64, now time.Time) {
	c, err := p.limiter.Charge(p.key, 1)
	if err != nil {
		return
	}
	if level, err := c.Level(now); err == nil && level.Tokens > tokens {
		if c, err = p.limiter.Charge(p.key, level.Tokens-tokens); err == nil {
			_, _ = c.Take(now)
		}
	}
}

// settle settles the estimates of a response, now or when its body has ended.
func (a *attempt) settle(response *http.Response, isRefusal bool) {
	var b *body
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case p.rule.Usage == nil || len(a.charges) == 0:
		case isRefusal:
			_ = p.charge.Settle(0) // if the store fails, the estimate stands
		case response.StatusCode == http.StatusSwitchingProtocols, response.Body == nil:
		default:
			r := p.rule.Usage(a.r, response.Header)
			if r == nil {
				continue
			}
			charge := p.charge
			if charge == tb.StoreCharge(&p.inMemory) {
				copied := p.inMemory
				charge = &copied
			}
			if b == nil {
				b = &body{ReadCloser: response.Body}
				response.Body = b
			}
			b.readers, b.charges = append(b.readers, r), append(b.charges, charge)
		}
	}
}

// body is the body of a response whose usage is read.
type body struct {
	io.ReadCloser
	mu      sync.Mutex // Close may be called during Read
	readers []usage.Reader
	charges []tb.StoreCharge
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.readers {
		_, _ = r.Write(p[:n])
	}
	if err != nil {
		b.settle()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return err
}

func (b *body) settle() {
	for i, c := range b.charges {
		if tokens, ok := b.readers[i].Usage(); ok {
			_ = c.Settle(tokens) // a number that is none, and a store that fails, leave the estimate
		}
	}
}
