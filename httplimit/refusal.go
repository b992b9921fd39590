package httplimit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// failureRetry is the Retry-After, in seconds and without jitter, if the store failed.
const failureRetry = 4

// Take is Admit for a server that does not write an http.ResponseWriter. It sets the fields of the
// response in h, unless h is nil, and writes nothing. The Refusal is nil if the request is granted.
// Event.Writer is nil in the hooks of the request.
func (l *Limiter) Take(h http.Header, r *http.Request) (
	d Decision, s *Settlement, refusal *Refusal,
) {
	c := l.begin(r)
	c.header = h
	o := c.decide()
	if o == granted {
		d, s = c.grant(true)
		return d, s, nil
	}
	d, why := c.refusal(o)
	refusal = c.complete(why, o)
	c.end()
	return d, nil, refusal
}

// complete returns a refusal for the application, which answers the request.
func (c *call) complete(r Refusal, o outcome) *Refusal {
	if c.header != nil {
		c.header.Set("Cache-Control", "no-store")
	}
	r.wait = tb.Never
	switch o {
	case failed:
		r.wait = c.spread(failureRetry * time.Second)
	case refused:
		var longest time.Duration
		for e := range c.enforced() {
			if e.refused {
				r.Violations = append(r.Violations, Violation{e.toDecision(), c.keyParts(e.rule)})
				longest = max(longest, e.decision.RetryAfter)
			}
		}
		r.wait = c.spread(longest)
	}
	return &r
}

// spread returns a wait with the jitter of this client. It is tb.Never if no Duration can hold it.
func (c *call) spread(wait time.Duration) time.Duration {
	retry := time.Duration(c.retryAfter(int64(wait)))
	if retry < wait {
		return tb.Never
	}
	return retry
}

// refusal returns the decision of the binding rule, or the zero Decision, and why a request with
// this outcome is not granted, without Violations and wait. It sets the fields of the response, and
// runs the hook Refused.
func (c *call) refusal(o outcome) (Decision, Refusal) {
	switch o {
	case refused:
		return c.refuse()
	case faulty:
		return c.reject()
	case failed:
		return c.fail()
	}
	return c.leave()
}

// refuse is refusal for a request for which a bucket has too few tokens. The binding rule is the
// one with the longest wait.
func (c *call) refuse() (Decision, Refusal) {
	var binding *entry
	longest := time.Duration(-1)
	for e := range c.enforced() {
		if !e.refused {
			continue
		}
		if wait := c.wait(e); wait > longest {
			binding, longest = e, wait
		}
	}
	if c.header != nil {
		c.setRefused(binding, c.retryAfter(max(1, ceilSeconds(longest))))
	}
	c.runHook(c.l.hooks.Refused, binding, nil)

	detail := binding.usualDetail
	if binding.cost != binding.price.fallback {
		detail = binding.detail(&binding.Rule, binding.cost)
	}
	return binding.toDecision(), Refusal{Status: http.StatusTooManyRequests, Detail: detail}
}

// reject is refusal for a request with a fault: a key is missing or repeated, or servers read its
// path differently. The binding rule is the one with the fault.
func (c *call) reject() (Decision, Refusal) {
	e := c.firstFault()
	c.runHook(c.l.hooks.Refused, e, nil)
	detail := "Rule " + e.label + " needs " + e.faultyKey + "."
	switch e.fault {
	case isRepeated:
		detail = "Rule " + e.label + " needs " + e.faultyKey + " once. It is there more than once."
	case isUnclear:
		detail = "Rule " + e.label + " needs a path that has one meaning."
	}
	return e.toDecision(), Refusal{Status: http.StatusBadRequest, Detail: detail}
}

// fail is refusal for a request that the store could not decide.
func (c *call) fail() (Decision, Refusal) {
	if c.header != nil {
		retry := strconv.FormatInt(c.retryAfter(failureRetry), 10)
		c.header[fieldRetryAfter] = []string{retry}
	}
	return Decision{}, Refusal{
		Status: http.StatusServiceUnavailable, Detail: "the rate limiter cannot decide",
	}
}

// leave is refusal for a request that has ended while it waited.
func (c *call) leave() (Decision, Refusal) {
	if errors.Is(c.r.Context().Err(), context.DeadlineExceeded) { // of the application
		return Decision{}, Refusal{
			Status: http.StatusServiceUnavailable,
			Detail: "The request has timed out before its tokens came.",
		}
	}
	return Decision{}, Refusal{
		Status: statusClientGone, Detail: "The request has ended before its tokens came.",
	}
}
