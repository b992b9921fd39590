package outbound

import (
	"net/http"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// attempt is one request on its way to the base, perhaps several times.
type attempt struct {
	t       *Transport
	r       *http.Request
	parts   []part
	charges []tb.Charge // that are taken
	room    struct {    // of the slices, if there is one rule
		parts     [1]part
		charges   [1]tb.Charge
		decisions [1]tb.Decision
	}

	mu      sync.Mutex // guards the rest, and the charges, while the attempt waits
	number  uint64     // in the order in which attempts began to wait
	taken   time.Time  // when the charges were taken
	slot    time.Time  // when their tokens may be used
	slowest *rule      // whose tokens come last, if they come later
	err     error      // why the attempt could not take anew
	moved   chan struct{}
}

// part is an attempt in one rule.
type part struct {
	rule    *rule
	key     *key
	cost    float64
	charge  tb.StoreCharge
	place   cas.Charge[string] // of the charge, if it is one of this process
	charged float64            // the cost, or the capacity if an estimate is above it
	endTurn func()             // if the attempts of the key go one at a time
}

func (t *Transport) begin(r *http.Request) *attempt {
	a := &attempt{t: t, r: r}
	a.parts, a.charges = a.room.parts[:], a.room.charges[:0]
	if len(t.limits) > 1 {
		a.parts = make([]part, len(t.limits))
	}
	for i, rule := range t.limits {
		p := &a.parts[i]
		p.rule, p.key, p.cost = rule, rule.get(rule.Key(a.r)), 1
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

func (a *attempt) end() {
	for i := range a.parts {
		p := &a.parts[i]
		if p.endTurn != nil {
			p.endTurn()
		}
		p.key.users.Add(-1)
	}
}

// await returns when the attempt may be sent. If it returns an error, nothing is taken.
func (a *attempt) await() error {
	for {
		wait, slowest, err := a.enter()
		if err == nil && slowest != nil {
			a.t.waits(a.r, slowest, wait)
			err = a.sleep(wait)
		}
		queued := false
		if err == nil {
			queued, err = a.queue()
		}
		if err == nil && !queued {
			return nil
		}
		a.giveBack(nil)
		if err != nil {
			return err
		}
	}
}

// send sends the request. If an answer does not come, the next attempt has its turn.
func (a *attempt) send() (*http.Response, error) {
	var turns []*time.Timer
	for i := range a.parts {
		if p := &a.parts[i]; p.endTurn != nil {
			turns = append(turns, time.AfterFunc(longestTurn, p.endTurn))
		}
	}
	a.t.sent.Add(1)
	response, err := a.t.base.RoundTrip(a.r)
	for _, turn := range turns {
		turn.Stop()
	}
	return response, err
}

// enter takes the charges. If their tokens come later, it returns whose come last, and the attempt
// waits from then on.
func (a *attempt) enter() (wait time.Duration, slowest *rule, err error) {
	for i := range a.parts {
		a.parts[i].key.takes.RLock()
	}
	if err = a.take(); err == nil && a.slowest != nil {
		wait, slowest = time.Until(a.slot), a.slowest
		a.number, a.moved = a.t.entered.Add(1), make(chan struct{}, 1)
		for i := range a.parts {
			k := a.parts[i].key
			k.mu.Lock()
			k.waiting[a] = true
			k.mu.Unlock()
		}
	}
	for i := range a.parts {
		a.parts[i].key.takes.RUnlock()
	}
	return wait, slowest, err
}

// take takes the charges, or none. Their tokens may be used at a.slot.
func (a *attempt) take() error {
	ctx := a.r.Context()
	within, err := sleep.AtMost(ctx)
	if err != nil {
		return err
	}
	a.charges, a.slowest = a.charges[:0], nil
	for i := range a.parts {
		p := &a.parts[i]
		if bad := p.prepare(within); bad != nil {
			err = bad
		}
		a.charges = append(a.charges, p.charge)
	}
	a.taken = time.Now()
	a.slot = a.taken
	var decisions []tb.Decision
	allowed := false
	if err == nil {
		decisions, allowed, err = a.t.store.TakeAll(ctx, a.taken, a.charges, a.room.decisions[:0])
	}
	if allowed {
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
	}
	a.charges = a.charges[:0]
	switch {
	case err == nil:
		return a.refusal(decisions, within)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	a.t.failed(a.r, err)
	return nil
}

// prepare makes the charge of the part, which may wait for a time.
func (p *part) prepare(within time.Duration) (err error) {
	p.charged = p.cost
	if p.cost > 1 && (p.rule.Usage != nil || p.rule.learns) {
		p.charged = min(p.cost, float64(p.key.limiter.Limit().Capacity))
	}
	if m, ok := p.key.limiter.(inPlace); ok {
		p.charge, err = &p.place, m.ChargeInPlace(&p.place, p.key.text, p.charged)
	} else {
		p.charge, err = p.key.limiter.Charge(p.key.text, p.charged)
	}
	if err == nil {
		p.charge.MayWait(within)
	}
	return err
}

// refusal returns the error of an attempt that cannot wait.
func (a *attempt) refusal(decisions []tb.Decision, within time.Duration) error {
	e, slowest := new(tb.WaitError), a.parts[0].rule
	for i, d := range decisions {
		if d.RetryAfter > e.Wait {
			e.Wait, slowest = d.RetryAfter, a.parts[i].rule
		}
	}
	if e.Deadline = e.Wait < tb.Never-within; e.Deadline {
		e.Wait += within
	}
	slowest.count(func(s *RuleStats) { s.TooLate++ })
	return e
}

// giveBack gives back what the charges have taken. Cancel gives nothing back while another attempt
// waits behind, because that keeps its slot. It does not if all attempts of the changed key take
// anew, and no other process has the bucket. Then, and after a settlement, a settlement gives back
// more than Cancel.
func (a *attempt) giveBack(changed *key) {
	for i := range a.charges {
		p := &a.parts[i]
		if p.rule.Usage != nil || p.key == changed && !a.t.isShared {
			_ = p.charge.Settle(0) // a store that fails gives nothing back
		} else {
			p.charge.Cancel()
		}
	}
	a.charges = a.charges[:0]
}

// sleep returns nil at the slot of the attempt, which comes after a time.
func (a *attempt) sleep(left time.Duration) error {
	done := a.r.Context().Done()
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-timer.C:
		case <-a.moved:
		case <-done:
			err = a.r.Context().Err()
		}
		if left, err = a.leave(err); left <= 0 {
			return err
		}
		timer.Reset(left)
	}
}

// leave ends the wait of an attempt, because of an error or because its slot has come. Otherwise it
// returns the time that is left.
func (a *attempt) leave(err error) (left time.Duration, _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		err = a.err
	} else if left = time.Until(a.slot); err == nil && left > 0 {
		return left, nil
	}
	for i := range a.parts {
		k := a.parts[i].key
		k.mu.Lock()
		delete(k.waiting, a)
		k.mu.Unlock()
	}
	return 0, err
}
