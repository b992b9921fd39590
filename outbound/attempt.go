package outbound

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// attempt is one request on its way to the base, perhaps several times.
type attempt struct {
	t         *Transport
	r         *http.Request
	parts     []part
	decisions []tb.Decision
	hasWaited bool

	mu      sync.Mutex  // guards the rest while the attempt waits
	charges []tb.Charge // of the last take
	slot    time.Time   // when the tokens of all parts may be used, if they come later
	slowest *rule       // whose tokens come last then
	err     error       // why the attempt could not take anew
	timer   *time.Timer // for the slot; nil if the attempt does not wait
}

type part struct {
	*key
	cost    float64
	charge  tb.StoreCharge
	place   cas.Charge[string] // of the charge, if it is one of this process
	charged float64            // the cost, or the capacity if an estimate is above it
	taken   time.Time          // when the charge was taken
	slot    time.Time          // when its tokens may be used, or zero if it has none
	endTurn func()             // if the attempts of the key go one at a time
	short   float64            // the cost if it waits for what has gone, under Transport.lines
}

var attempts = sync.Pool{New: func() any { return new(attempt) }}

func (t *Transport) begin(r *http.Request) *attempt {
	a := attempts.Get().(*attempt)
	a.t, a.r, a.parts = t, r, slices.Grow(a.parts, len(t.rules))[:len(t.rules)]
	for i, rule := range t.rules {
		p := &a.parts[i]
		p.key, p.cost = rule.get(rule.Key(a.r)), 1
		if rule.Cost != nil {
			if a.r == r { // a Cost may replace the body
				a.r = r.WithContext(r.Context())
			}
			if cost := rule.Cost(a.r); cost > 0 {
				p.cost = min(cost, 2*tb.MaxCapacity)
			}
		}
	}
	return a
}

// end ends the attempt. It is used again, unless a line or the body of a response may have it.
func (a *attempt) end() {
	isKept := a.hasWaited
	for i := range a.parts {
		p := &a.parts[i]
		p.users.Add(-1)
		isKept = isKept || p.rule.Usage != nil
	}
	if !isKept {
		clear(a.parts)
		*a = attempt{parts: a.parts[:0], charges: a.charges[:0], decisions: a.decisions[:0]}
		attempts.Put(a)
	}
}

// await returns when the attempt may be sent. If it returns an error, nothing is taken.
func (a *attempt) await() error {
	wait, slowest, err := a.enter()
	if slowest != nil {
		begin := time.Now() // the slot may move
		defer slowest.count(func(s *RuleStats) {
			s.Waited, s.WaitTime = s.Waited+1, s.WaitTime+time.Since(begin)
		})
		if f := a.t.hooks.Waits; f != nil {
			f(a.r, slowest.Name, wait)
		}
	}
	for a.timer != nil {
		select {
		case <-a.timer.C:
		case <-a.r.Context().Done():
		}
		err = a.wake(a.takeTurns())
	}
	if err != nil {
		a.giveBack(a.parts, false)
		a.endTurns()
	}
	return err
}

// enter takes the charges. If their tokens come later, it returns whose come last. Then the attempt
// waits from then on, and so it does if it needs a turn.
func (a *attempt) enter() (wait time.Duration, slowest *rule, err error) {
	waits := false
	for i := range a.parts {
		p := &a.parts[i]
		p.takes.RLock()
		p.slot = time.Time{} // what an attempt that was sent has taken stays
		waits = waits || p.isSingle.Load()
	}
	if err = a.take(a.parts); err == nil && (waits || a.slowest != nil) {
		wait, slowest = time.Until(a.slot), a.slowest
		a.timer, a.hasWaited = time.NewTimer(wait), true
		a.t.lines.Lock()
		for i := range a.parts {
			k := a.parts[i].key
			k.line = append(k.line, a)
		}
		a.t.lines.Unlock()
	}
	for i := range a.parts {
		a.parts[i].takes.RUnlock()
	}
	return wait, slowest, err
}

// take takes the charges of parts, or none. What costs less than the refused attempt has its tokens
// before the pause ends. It takes anew in place of that, as if the bucket had only its cost then.
func (a *attempt) take(parts []part) error {
	within, err := a.charge(parts)
	now := time.Now() // in another process from its decision on, which is not later
	for i := range a.charges {
		p, one := &parts[i], parts[i:i+1]
		delay, pause := p.charge.Delay(), p.paused.Load().Sub(now)
		switch p.slot = now.Add(delay); {
		case delay >= pause || err != nil:
		case pause > within:
			p.rule.count(func(s *RuleStats) { s.TooLate++ })
			err = &tb.WaitError{Wait: pause, Deadline: true}
		default:
			a.giveBack(one, false)
			a.leave(p, p.charged, pause, now)
			_, err = a.charge(one)
			if now = time.Now(); len(a.charges) > 0 {
				p.slot = now.Add(max(p.charge.Delay(), p.paused.Load().Sub(now)))
			}
		}
	}
	for i := 0; i < len(a.parts) && err == nil; i++ {
		if p := &a.parts[i]; p.slot.After(now) && p.slot.After(a.slot) {
			a.slot, a.slowest = p.slot, p.rule
		}
	}
	if err == nil && len(a.parts) > 1 {
		_, err = a.depart(now, a.timer == nil)
	}
	if err != nil { // now, so that what takes anew behind it may have them
		a.giveBack(parts, false)
	}
	return err
}

// depart counts an attempt if it goes: it is awake, its slot has come, and it has its turn. It has
// taken its tokens when it came. If it has waited for one key since, what has gone meanwhile may
// have left too little of another one. Then it waits for that one, too, behind earlier attempts
// that do so, or that go when they are awake.
func (a *attempt) depart(now time.Time, isAwake bool) (goes bool, err error) {
	a.t.lines.Lock()
	defer a.t.lines.Unlock()
	goes = isAwake
	for i := 0; i < len(a.parts) && !a.slot.After(now); i++ {
		p := &a.parts[i]
		limit, lacks := p.limiter.Limit(), p.charged-p.spend(0, now)
		for n := 0; n < len(p.line) && p.line[n] != a; n++ {
			lacks += p.line[n].parts[i].short
		}
		if lacks > 1e-6*float64(limit.Capacity) && !p.slot.IsZero() { // or else it is rounding
			slot := now.Add(timeOf(limit, lacks))
			if deadline, ok := a.r.Context().Deadline(); ok && slot.After(deadline) {
				p.rule.count(func(s *RuleStats) { s.TooLate++ })
				return false, &tb.WaitError{Wait: slot.Sub(now), Deadline: true}
			}
			p.short, p.slot, a.slot, a.slowest = p.charged, slot, slot, p.rule
		}
		goes = goes && (p.endTurn != nil || !p.isSingle.Load())
	}
	isDue := !a.slot.After(now)
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case isDue && !isAwake:
			p.short = p.charged
		case isDue, p.slot.Before(a.slot):
			p.short = 0 // it must not hold up others while it waits for another key
		}
		if isDue && goes && !p.slot.IsZero() { // or else the store has failed
			p.spend(p.charged, now)
		}
	}
	return isDue && goes, nil
}

// charge takes the charges of parts, or none, within the time until the deadline.
func (a *attempt) charge(parts []part) (within time.Duration, err error) {
	ctx, now := a.r.Context(), time.Now()
	a.charges, a.slot, a.slowest = a.charges[:0], time.Time{}, nil
	within, err = tb.Never, ctx.Err()
	if deadline, ok := ctx.Deadline(); ok {
		within = deadline.Sub(now)
	}
	if err == nil && within < 0 { // the timer of the context is late
		err = context.DeadlineExceeded
	}
	if err != nil {
		return within, err
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		p := &parts[i]
		p.charged, p.taken = p.cost, now
		if p.cost > 1 && (p.rule.Usage != nil || p.rule.learns) {
			p.charged = min(p.cost, float64(p.limiter.Limit().Capacity))
		}
		if m, ok := p.limiter.(inPlace); ok {
			p.charge, err = &p.place, m.ChargeInPlace(&p.place, p.text, p.charged)
		} else {
			p.charge, err = p.limiter.Charge(p.text, p.charged)
		}
		if err == nil {
			p.charge.MayWait(within)
			a.charges = append(a.charges, p.charge)
		}
	}
	allowed := false
	if err == nil {
		all := ctx
		if a.t.isShared { // a command that is under way takes its tokens, also if its caller leaves
			all = context.WithoutCancel(ctx)
		}
		a.decisions, allowed, err = a.t.store.TakeAll(all, now, a.charges, a.decisions[:0])
	}
	if !allowed {
		a.charges = a.charges[:0]
		if err == nil {
			return within, a.refusal(parts, within)
		}
		if ctx.Err() == nil {
			a.t.failed(a.r, err)
		}
	}
	return within, ctx.Err()
}

func (a *attempt) refusal(parts []part, within time.Duration) error {
	e, slowest := new(tb.WaitError), parts[0].rule
	for i, d := range a.decisions {
		if d.RetryAfter > e.Wait {
			e.Wait, slowest = d.RetryAfter, parts[i].rule
		}
	}
	if e.Deadline = e.Wait < tb.Never-within; e.Deadline {
		e.Wait += within
	}
	slowest.count(func(s *RuleStats) { s.TooLate++ })
	return e
}

// giveBack gives back what the charges of parts have taken. Cancel gives nothing back while another
// attempt waits behind, because that keeps its slot. A settlement gives back more: of an estimate,
// or if all attempts of the key take anew, which those of other processes do not.
func (a *attempt) giveBack(parts []part, isMoved bool) {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.slot.IsZero():
		case isMoved && !a.t.isShared, !isMoved && p.rule.Usage != nil:
			_ = p.charge.Settle(0) // a store that fails gives nothing back
		default:
			p.charge.Cancel()
		}
		p.slot = time.Time{}
	}
}

func (a *attempt) takeTurns() error {
	ctx := a.r.Context()
	for i := range a.parts {
		p := &a.parts[i]
		for turn := p.turn; p.endTurn == nil && p.isSingle.Load() && ctx.Err() == nil; {
			a.t.lines.Lock()
			for j := range a.parts {
				a.parts[j].short = 0 // it must not hold up others while it waits for its turn
			}
			a.t.lines.Unlock()
			select {
			case turn <- struct{}{}:
				p.endTurn = sync.OnceFunc(func() { <-turn })
			case <-a.timer.C: // it has taken anew, perhaps because it needs no turn any more
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

func (a *attempt) endTurns() {
	for i := range a.parts {
		if p := &a.parts[i]; p.endTurn != nil {
			p.endTurn()
			p.endTurn = nil
		}
	}
}

// wake ends the wait of an attempt, because of an error or because its slot has come. If the slot
// has moved, the wait goes on.
func (a *attempt) wake(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	goes := len(a.parts) == 1
	if a.err != nil {
		err = a.err
	} else if err == nil && !goes && time.Until(a.slot) <= 0 {
		at := a.slot // and not later, or else the lateness of timers would add up
		if at.IsZero() || slices.ContainsFunc(a.parts, func(p part) bool { return p.endTurn != nil }) {
			at = time.Now() // it has waited for its turn
		}
		goes, err = a.depart(at, true)
	}
	if left := time.Until(a.slot); err == nil && (left > 0 || !goes) {
		a.endTurns() // or else two attempts might have a turn each, and wait for the other's
		a.timer.Reset(left)
		return nil
	}
	a.timer.Stop()
	a.timer = nil
	a.t.lines.Lock()
	defer a.t.lines.Unlock()
	for i := range a.parts {
		p := &a.parts[i]
		p.line = slices.DeleteFunc(p.line, func(b *attempt) bool { return b == a })
		if p.endTurn != nil { // so that the next attempt goes if an answer does not come
			time.AfterFunc(longestTurn, p.endTurn)
		}
	}
	return err
}

// move calls f, which changes the bucket of a key. What waits for it gives back its tokens before,
// and takes anew after, in the order in which it came. It keeps what it has of other keys. If all
// of it has tokens of k at end or later, it keeps them. k.takes is locked.
func (t *Transport) move(k *key, end time.Time, f func()) {
	t.lines.Lock()
	all := slices.Clone(k.line)
	t.lines.Unlock()
	i, isEarly := slices.Index(t.rules, k.rule), false
	for _, a := range all { // in the same order in all keys
		a.mu.Lock()
		defer a.mu.Unlock()
		isEarly = isEarly || a.timer != nil && a.parts[i].slot.Before(end)
	}
	all = slices.DeleteFunc(all, func(a *attempt) bool { return !isEarly || a.timer == nil })
	for _, a := range slices.Backward(all) {
		a.giveBack(a.parts[i:i+1], true)
	}
	f()
	for _, a := range all {
		if a.err == nil { // or else it goes, and lacks what another key has not given
			a.err = a.take(a.parts[i : i+1])
			a.timer.Reset(time.Until(a.slot))
		}
	}
}
