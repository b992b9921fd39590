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

// newRefusal returns a refusal for the application, which answers the request.
func (c *call) newRefusal(o outcome, status int, detail string) *Refusal {
	if c.header != nil {
		c.header.Set("Cache-Control", "no-store")
	}
	r := &Refusal{Status: status, Detail: detail, wait: tb.Never}
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
	return r
}

// spread returns a wait with the jitter of this client, unless no wait helps.
func (c *call) spread(wait time.Duration) time.Duration {
	if wait == tb.Never {
		return wait
	}
	return min(time.Duration(c.retryAfter(int64(wait))), tb.Never-1)
}

// refusal returns the binding rule, or nil, and what the client is told about a request with this
// outcome. It sets the fields of the response, and runs the hook Refused.
func (c *call) refusal(o outcome) (binding *entry, status int, detail string) {
	switch o {
	case refused:
		return c.refuse()
	case faulty:
		e := c.firstFault()
		c.runHook(c.l.hooks.Refused, e, nil)
		return e, http.StatusBadRequest, e.faultDetail()
	case failed:
		if c.header != nil {
			retry := strconv.FormatInt(c.retryAfter(failureRetry), 10)
			c.header[fieldRetryAfter] = []string{retry}
		}
		return nil, http.StatusServiceUnavailable, "the rate limiter cannot decide"
	}
	if errors.Is(c.r.Context().Err(), context.DeadlineExceeded) { // of the application
		return nil, http.StatusServiceUnavailable, "The request has timed out before its tokens came."
	}
	return nil, statusClientGone, "The request has ended before its tokens came."
}

// refuse is refusal for a request for which a bucket has too few tokens. The binding rule is the
// one with the longest wait. A cost that can never fit waits for longer than any other.
func (c *call) refuse() (binding *entry, status int, detail string) {
	var longest, waitOfBinding time.Duration
	for e := range c.enforced() {
		if !e.refused {
			continue
		}
		wait := c.wait(e)
		if binding == nil || e.neverFits() && !binding.neverFits() ||
			e.neverFits() == binding.neverFits() && wait > waitOfBinding {
			binding, waitOfBinding = e, wait
		}
		longest = max(longest, wait)
	}
	if c.header != nil {
		c.setRefused(binding, c.retryAfter(max(1, ceilSeconds(longest))))
	}
	c.runHook(c.l.hooks.Refused, binding, nil)

	detail = binding.usualDetail
	if binding.cost != binding.price.fallback {
		detail = binding.detail(&binding.Rule, binding.cost)
	}
	return binding, http.StatusTooManyRequests, detail
}

func (e *entry) faultDetail() string {
	switch e.fault {
	case isRepeated:
		return "Rule " + e.label + " needs " + e.faultyKey + " once. It is there more than once."
	case isUnclear:
		return "Rule " + e.label + " needs a path that has one meaning."
	}
	return "Rule " + e.label + " needs " + e.faultyKey + "."
}
