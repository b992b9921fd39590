package outbound

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// attempt is one request on its way to the base, perhaps several times.
type attempt struct {
	t         *Transport
	r         *http.Request
	parts     []part
	charges   []tb.Charge // that are taken
	decisions []tb.Decision
	notices   []notice

	// While the attempt is in the line, its lock guards these and the charges.
	taken   time.Time // when the charges were taken
	slot    time.Time // when their tokens may be used
	slowest *rule     // whose tokens come last, if they come later
	err     error     // why the attempt could not take anew
	moved   chan struct{}
}

// part is an attempt in one rule.
type part struct {
	rule     *rule
	key      string
	cost     float64
	learned  *learnedKey // nil if the rule has a limit
	limiter  limiter
	within   time.Duration // that the charge may wait
	isSingle bool          // one attempt at a time may go
	charge   tb.StoreCharge
	charged  float64            // the cost, or the capacity if an estimate is above it
	inMemory cas.Charge[string] // the charge, if it is of a memory
}

func (t *Transport) begin(r *http.Request) *attempt {
	a := t.attempts.Get().(*attempt)
	a.r = r
	if t.edits {
		copied := *r
		a.r = &copied
	}
	for i, rule := range t.limits {
		p := &a.parts[i]
		p.rule, p.key, p.cost, p.limiter = rule, rule.Key(a.r), 1, rule.limiter
		if rule.Cost != nil {
			if cost := rule.Cost(a.r); cost > 0 {
				p.cost = min(cost, 2*tb.MaxCapacity)
			}
		}
		if rule.keys != nil {
			p.learned = rule.keys.get(p.key)
			p.limiter = p.learned.limiter
		}
	}
	return a
}

// end makes the attempt ready for another request.
func (a *attempt) end() {
	a.r, a.charges, a.slowest, a.err = nil, a.charges[:0], nil, nil
	clear(a.parts)
	a.t.attempts.Put(a)
}

// await returns when the attempt may be sent. If it returns an error, nothing is taken.
func (a *attempt) await() error {
	ctx, l := a.r.Context(), a.t.line
	l.takes.RLock()
	err := a.take(ctx)
	wait := a.slot.Sub(a.taken)
	slowest := a.slowest
	if err == nil && wait > 0 {
		l.enter(a)
	}
	l.takes.RUnlock()
	if err != nil || wait <= 0 {
		return err
	}
	a.t.waits(a.r, slowest, wait)
	if err = l.sleep(ctx, a, wait); err == nil {
		return nil
	}
	for i := range a.parts {
		if p := &a.parts[i]; p.isSingle { // what waits behind it gets its turn
			l.change(p, a.taken.Add(tb.Never), func(int) { a.giveBack(p) })
		}
	}
	a.giveBack(nil)
	return err
}

// take takes the charges, or none. Their tokens may be used at a.slot.
func (a *attempt) take(ctx context.Context) error {
	within, err := sleep.AtMost(ctx)
	if err != nil {
		return err
	}
	a.charges = a.charges[:0]
	for i := range a.parts {
		if err == nil {
			err = a.parts[i].prepare(within, a.t.line.length.Load())
			a.charges = append(a.charges, a.parts[i].charge)
		}
	}
	a.taken = time.Now()
	a.slot = a.taken
	allowed := false
	if err == nil {
		a.decisions, allowed, err = a.t.store.TakeAll(ctx, a.taken, a.charges, a.decisions)
	}
	if !allowed {
		a.charges = a.charges[:0]
	}
	switch {
	case allowed:
		var longest time.Duration
		for i := range a.parts {
			if p := &a.parts[i]; p.charge.Delay() > longest {
				longest, a.slowest = p.charge.Delay(), p.rule
			}
		}
		if longest > 0 { // in another process from its decision on, which is not later than now
			a.slot = time.Now().Add(longest)
		}
		return nil
	case err == nil:
		return a.refusal()
	case ctx.Err() != nil:
		return ctx.Err()
	}
	a.t.failed(a.r, err)
	return nil
}

// prepare makes the charge of the part, which may wait for a time. If one attempt at a time may go,
// an attempt behind others has its turn before the limit says.
func (p *part) prepare(within time.Duration, waiting int64) (err error) {
	p.charged, p.within = p.cost, within
	if p.rule.Usage != nil || p.learned != nil {
		p.charged = min(p.cost, float64(p.limiter.Limit().Capacity))
	}
	if m, ok := p.limiter.(memoryLimiter); ok {
		p.inMemory, err = m.Limiter.Charge(p.key, p.charged)
		p.charge = &p.inMemory
	} else if p.charge, err = p.limiter.Charge(p.key, p.charged); err != nil {
		return err
	}
	if p.isSingle = p.learned != nil && p.learned.isSingle.Load(); p.isSingle {
		p.within = min(within, tb.Never/2) + time.Duration(waiting+1)*single.Per
	}
	p.charge.MayWait(p.within)
	return err
}

// refusal returns the error of an attempt that cannot wait.
func (a *attempt) refusal() error {
	e, slowest := new(tb.WaitError), &a.parts[0]
	_, hasDeadline := a.r.Context().Deadline()
	for i, d := range a.decisions {
		p := &a.parts[i]
		isLate := hasDeadline && d.RetryAfter < tb.Never-p.within
		if isLate {
			d.RetryAfter += p.within
		}
		if !d.Allowed && d.RetryAfter > e.Wait {
			e.Wait, e.Deadline, slowest = d.RetryAfter, isLate, p
		}
	}
	slowest.rule.counts.tooLate.Add(1)
	return e
}

// giveBack gives back what the charges have taken. Cancel gives nothing back while another attempt
// waits behind, because that keeps its slot. It does not if all attempts of the bucket take anew:
// those of the bucket of changed do, if no other process has it. Then, and after a settlement,
// a settlement gives back more than Cancel.
func (a *attempt) giveBack(changed *part) {
	for i := range a.charges {
		p := &a.parts[i]
		_, isOurs := p.limiter.(memoryLimiter)
		if p.rule.Usage != nil || changed != nil && p.isOf(changed) && (isOurs || p.isSingle) {
			_ = p.charge.Settle(0) // a store that fails gives nothing back
		} else {
			p.charge.Cancel()
		}
	}
	a.charges = a.charges[:0]
}

// isOf reports whether two parts are of one bucket.
func (p *part) isOf(o *part) bool { return p.rule == o.rule && p.key == o.key }

// line has the attempts that wait for their slots. The slots of a bucket are in order. Only a
// change moves them: it takes anew for all of the attempts that it concerns, in their order.
type line struct {
	takes   sync.RWMutex // read while an attempt takes its charges, locked by a change
	mu      sync.Mutex   // after takes
	waiting map[*attempt]struct{}
	length  atomic.Int64 // of waiting
}

func (l *line) enter(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[a] = struct{}{}
	l.length.Add(1)
}

// sleep returns nil at the slot of the attempt, which comes after a time. It takes the attempt out
// of the line.
func (l *line) sleep(ctx context.Context, a *attempt, left time.Duration) error {
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-timer.C:
		case <-a.moved:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if left, err = l.leave(a, err); left <= 0 {
			return err
		}
		timer.Reset(left)
	}
}

// leave takes an attempt out of the line, because of an error or because its slot has come.
// Otherwise it returns the time that is left.
func (l *line) leave(a *attempt, err error) (left time.Duration, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.err != nil {
		err = a.err
	} else if left = time.Until(a.slot); err == nil && left > 0 {
		return left, nil
	}
	delete(l.waiting, a)
	l.length.Add(-1)
	select {
	case <-a.moved: // before the slot had come
	default:
	}
	return 0, err
}

// change calls f, which changes the bucket of p, with the number of attempts that wait for it. They
// take anew, unless all of their slots are at end or later.
func (l *line) change(p *part, end time.Time, f func(waiting int)) {
	l.takes.Lock()
	defer l.takes.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*attempt
	for a := range l.waiting {
		if a.hasBucketOf(p) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *attempt) int { return a.slot.Compare(b.slot) })
	if len(all) > 0 && !all[0].slot.Before(end) {
		all = nil
	}
	for _, a := range slices.Backward(all) {
		a.giveBack(p)
	}
	f(len(all))
	for _, a := range all {
		a.err = a.take(a.r.Context())
		select {
		case a.moved <- struct{}{}:
		default:
		}
	}
}

func (a *attempt) hasBucketOf(p *part) bool {
	for i := range a.parts {
		if a.parts[i].isOf(p) {
			return true
		}
	}
	return false
}
