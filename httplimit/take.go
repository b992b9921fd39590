package httplimit

import (
	"context"
	"net/http"
)

// Middleware returns a handler that passes granted requests to next, with its fields already set
// in the header of the response, and responds to all other requests itself. It passes the
// ResponseWriter on unchanged, unless a rule is adaptive or has its cost in the response: see
// Settlement.Writer.
//
// If several limiters are nested, RateLimit and RateLimit-Policy list the rules of all of them, and
// the fields that occur only once are about the rule with the fewest tokens left.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := r
		if l.usage.Estimate != nil { // net/http looks for what is left in the Body of its own request
			r = r.WithContext(r.Context()) // a copy
		}
		d, settlement, ok := l.Admit(w, r)
		if !ok {
			return
		}
		if settlement != nil {
			defer settlement.Finish()
			w, r = settlement.Writer(w), settlement.Request(r)
		}
		if l.inContext && d.Rule != "" {
			if outer, ok := FromContext(r.Context()); !ok || d.Remaining < outer.Remaining {
				r = r.WithContext(context.WithValue(r.Context(), decisionKey{}, d))
			}
		}
		if own != r {
			defer handBack(own, r) // also if the handler panics
		}
		next.ServeHTTP(w, r)
		settlement.readHeader(http.StatusOK, w.Header()) // if net/http answers for the handler
	})
}

// handBack lets net/http remove the files of the form, and outer middleware report the pattern.
func handBack(own, r *http.Request) { own.MultipartForm, own.Pattern = r.MultipartForm, r.Pattern }

// Decide takes the tokens for a request, where there is no handler to wrap. If the policy grants
// them, Decide sets fields in w's header. If not, Decide or the function of WithRefusal writes the
// whole response. If a rule delays the request, Decide returns when its tokens may be used. If the
// context of the request ends before, the status is 499 or 503: see Refusal.
//
// Decide returns the decision of the binding rule. If the request is granted, that rule has the
// fewest tokens left. If it is refused with 429, the rule has the longest wait, or a bucket that
// the cost can never fit. With 400 its key or path is at fault: see Refusal. Decide returns the
// zero Decision, which has no Rule, if no rule applied, the store failed, the request ended or it
// was early data.
//
// If a rule has its cost in the response, the estimate stands: Admit settles it. The rate of an
// adaptive rule stays as it is.
func (l *Limiter) Decide(w http.ResponseWriter, r *http.Request) (d Decision, ok bool) {
	d, s, _, ok := l.admit(w, w.Header(), r, false)
	s.Finish()
	return d, ok
}

// Admit is Decide for a policy that has costs in responses or adaptive rules. The caller settles a
// granted request with the Settlement, which is nil if there is nothing to settle.
func (l *Limiter) Admit(w http.ResponseWriter, r *http.Request) (
	d Decision, s *Settlement, ok bool,
) {
	d, s, _, ok = l.admit(w, w.Header(), r, true)
	return d, s, ok
}

// Take is Admit for a server that does not write an http.ResponseWriter. It sets the fields of the
// response in h, unless h is nil, and writes nothing. The Refusal is nil if the request is granted.
// Event.Writer is nil in the hooks of the request.
func (l *Limiter) Take(h http.Header, r *http.Request) (
	d Decision, s *Settlement, refusal *Refusal,
) {
	d, s, refusal, _ = l.admit(nil, h, r, true)
	return d, s, refusal
}

// admit decides a request, and answers it if it is not granted. Without a writer, the caller does
// that with the Refusal. Adaptive rules observe the response only if the caller passes it to s.
func (l *Limiter) admit(w http.ResponseWriter, h http.Header, r *http.Request, observed bool) (
	d Decision, s *Settlement, refusal *Refusal, ok bool,
) {
	c := l.begin(r)
	c.w, c.header = w, h
	o := c.decide()
	if o == granted {
		d, s = c.grant(observed)
		return d, s, nil, true
	}
	binding, status, detail := c.refusal(o)
	switch {
	case w == nil:
		refusal = c.newRefusal(o, status, detail)
	case l.answer != nil && status != statusClientGone:
		l.answer(w, r, c.newRefusal(o, status, detail))
	default:
		c.write(status, detail)
	}
	d = binding.toDecision()
	c.end()
	return d, nil, refusal, false
}

func (c *call) decide() outcome {
	c.findRules()
	if s := c.r.TLS; c.hasAddress && c.r.ProtoMajor == 3 && s != nil && !s.HandshakeComplete {
		return early
	}
	if len(c.entries) == 0 {
		return granted
	}
	c.now = c.l.clock()
	if e := c.firstFault(); e != nil {
		c.count(e).rejected.Add(1)
		return faulty
	}
	if c.policy.delays {
		c.patience = c.l.waits.mostPatience(c.r.Context(), c.policy.maxWaiting)
	}
	allowed, err := c.take()
	if c.delay > 0 {
		c.now = c.l.clock() // a store with its own clock counts the delay from its decision
		switch c.await() {
		case gone:
			return gone
		case refused:
			c.patience = 0
			allowed, err = c.take()
		}
	}
	switch {
	case err != nil:
		for e := range c.enforced() {
			c.count(e).errors.Add(1)
			c.runHook(c.l.hooks.Error, e, err)
			break // a store does not say for which rule it fails
		}
		if c.l.failClosed {
			return failed
		}
		c.failedOpen = true
	case !allowed:
		for e := range c.enforced() {
			if e.refused {
				c.block(e)
				c.count(e).refused.Add(1)
				if e.control != nil {
					e.control.Refused()
				}
			}
		}
		return refused
	}
	c.takeShadows(err)
	if err == nil {
		for e := range c.enforced() {
			c.count(e).granted.Add(1)
		}
	}
	return granted
}

func (c *call) take() (allowed bool, err error) {
	c.charges, c.delay = c.charges[:0], 0
	for e := range c.enforced() {
		charge, err := c.prepare(e)
		if err != nil {
			return false, err
		}
		c.charges = append(c.charges, charge)
	}
	if len(c.charges) == 0 {
		return true, nil
	}
	c.decisions, allowed, err = c.l.store.TakeAll(c.r.Context(), c.now, c.charges, c.decisions)
	if err != nil {
		return false, err
	}
	i := 0
	for e := range c.enforced() {
		e.accept(c.decisions[i])
		e.refused = !e.decision.Allowed && e.decision.RetryAfter > 0 // or it was not asked
		if allowed {
			if err := c.readDelay(e); err != nil {
				c.delay = 0
				return false, err
			}
			if e.delay > c.delay {
				c.delay, c.slowest = e.delay, e
			}
		}
		i++
	}
	return allowed, nil
}

// takeShadows charges each shadow rule by itself, and reports its decision to the hooks. A store
// that has failed is not asked again.
func (c *call) takeShadows(failed error) {
	for i := range c.entries {
		e := &c.entries[i]
		if !e.Shadow {
			continue
		}
		isDecided := e.fault != noFault
		if !isDecided && failed == nil {
			failed = c.takeShadow(e)
		}
		switch {
		case !isDecided && failed != nil:
			c.count(e).errors.Add(1)
			c.runHook(c.l.hooks.Error, e, failed)
			continue
		case e.decision.Allowed:
			c.count(e).shadowGranted.Add(1)
		default:
			c.block(e)
			c.count(e).shadowRefused.Add(1)
		}
		c.runHook(c.l.hooks.Shadow, e, nil)
	}
}

func (c *call) takeShadow(e *entry) (err error) {
	c.patience = e.MaxDelay // it takes in advance, but the request does not wait
	if _, err = c.prepare(e); err != nil {
		return err
	}
	d, err := e.charge.Take(c.now)
	if err == nil && !makesSense(d) {
		err = nonsense(c.l.store, "%+v", d)
	}
	if err != nil {
		return err
	}
	e.accept(d)
	if err = c.readDelay(e); e.delay > 0 {
		e.delays.add(e.delay)
	}
	return err
}
