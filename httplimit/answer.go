package httplimit

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// binding returns the rule that a granted request is nearest to be refused by: the first of
// those with the fewest tokens left. It is nil if no rule applied or a limiter failed.
func (c *call) binding() (binding *entry) {
	for e := range c.enforced() {
		if !c.open && (binding == nil || e.decision.Remaining < binding.decision.Remaining) {
			binding = e
		}
	}
	return binding
}

// grant sets the fields of a granted request.
func (c *call) grant(h http.Header, binding *entry) {
	c.text = c.text[:0]
	var start, end int // of binding's tokens
	for e := range c.enforced() {
		from, to := c.item(e, e.decision.Remaining, c.reset(e))
		if e == binding {
			start, end = from, to
		}
	}
	list := string(c.text)
	f := newFields(h, 4)
	f.set(fieldRateLimit, list)
	f.triple(binding.quota, list[start:end], strconv.FormatInt(c.reset(binding), 10))
	c.optional(&f, binding, list[start:end], 0)
}

// refuse answers a request that was refused. The binding rule, whose decision it returns, is
// the one with the longest wait.
func (c *call) refuse(w http.ResponseWriter) Decision {
	var binding *entry
	longest := time.Duration(-1)
	for e := range c.enforced() {
		if !e.refuses {
			continue
		}
		if wait := c.wait(e); wait > longest {
			binding, longest = e, wait
		}
	}
	retry := c.retryAfter(max(1, ceilSeconds(longest)))
	c.text = c.text[:0]
	for e := range c.enforced() {
		if e.refuses {
			c.item(e, 0, retry)
		}
	}
	f := newFields(w.Header(), 6)
	seconds := strconv.FormatInt(retry, 10)
	f.set(fieldRetryAfter, seconds)
	f.triple(binding.quota, "0", seconds)
	f.set(fieldRateLimit, string(c.text))
	if c.l.reason != "" {
		f.set(c.l.reason, "token_bucket_exceeded")
	}
	c.optional(&f, binding, "0", retry)
	c.tell(c.l.hooks.Refused, binding, nil)

	cost := strconv.FormatFloat(binding.cost, 'g', -1, 64)
	detail := binding.label + " has too few tokens left for this request, which costs " + cost + "."
	if binding.cost > float64(binding.Limit.Capacity) {
		detail = binding.label + " never has more than " + binding.quota +
			" tokens. This request costs " + cost + ", so it can never fit."
	}
	c.problem(w, http.StatusTooManyRequests, detail)
	return binding.answer()
}

// reject answers a request that lacks a key, and returns the decision of the rule that
// insists on it.
func (c *call) reject(w http.ResponseWriter) Decision {
	e := c.lacks()
	c.problem(w, http.StatusBadRequest, "Policy "+e.label+" needs "+e.missing+".")
	return e.answer()
}

// optional sets the fields that are sent only if the program wants them.
func (c *call) optional(f *fields, binding *entry, remaining string, retry int64) {
	if c.l.sendPolicy {
		c.text = c.text[:0]
		for e := range c.enforced() {
			c.separate()
			c.text = append(c.text, e.policy...)
		}
		f.set(fieldPolicy, string(c.text))
	}
	if c.l.sendX {
		full := c.now.Add(c.level(binding).Full).Add(time.Second - 1).Unix()
		f.set("X-Ratelimit-Limit", binding.quota)
		f.set("X-Ratelimit-Remaining", remaining)
		f.set("X-Ratelimit-Reset", strconv.FormatInt(max(full, c.now.Unix()+retry), 10))
	}
}

// problem answers with a body after RFC 9457.
func (c *call) problem(w http.ResponseWriter, status int, detail string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	if c.r.Method == http.MethodHead {
		return
	}
	// Labels and names of keys are printable ASCII, of which a quoted string is the same
	// in Go, JSON and a structured field.
	b := c.text[:0]
	b = append(b, `{"type":`...)
	if status == http.StatusTooManyRequests {
		b = append(b, `"`+quotaExceeded+`","title":"Quota exceeded"`...)
	} else {
		b = append(b, `"about:blank","title":`...)
		b = strconv.AppendQuote(b, http.StatusText(status))
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(status), 10)
	b = strconv.AppendQuote(append(b, `,"detail":`...), detail)
	if status == http.StatusTooManyRequests {
		b = append(b, `,"violated-policies":`...)
		separator := byte('[')
		for e := range c.enforced() {
			if e.refuses {
				b = strconv.AppendQuote(append(b, separator), e.label)
				separator = ','
			}
		}
		b = append(b, ']')
	}
	b = append(b, "}\n"...)
	c.text = b
	_, _ = w.Write(b) // the client is gone, or is not: there is nobody to tell
}

// reset returns the seconds until e's bucket has one more whole token, at least 1.
func (c *call) reset(e *entry) int64 {
	if !e.slow {
		return 1
	}
	return max(1, ceilSeconds(c.level(e).NextToken))
}

// wait returns (cost − tokens)/rate, also for a cost above the capacity, although no wait
// helps then.
func (c *call) wait(e *entry) time.Duration {
	over := e.cost - float64(e.Limit.Capacity)
	if over <= 0 {
		return e.decision.RetryAfter
	}
	return sum(c.level(e).Full, toSupply(e.Limit, over))
}

// level returns how full e's bucket is after the decision. A bucket is asked once. If it
// cannot be asked, level returns the longest times that the decision allows.
func (c *call) level(e *entry) tb.Level {
	if e.hasLevel {
		return e.level
	}
	e.hasLevel = true
	var ok bool
	if e.level, ok = e.readLevel(c.now); !ok {
		e.level = tb.Level{Tokens: float64(e.decision.Remaining)}
		if missing := e.Limit.Capacity - e.decision.Remaining; missing > 0 {
			e.level.NextToken = toSupply(e.Limit, 1)
			e.level.Full = toSupply(e.Limit, float64(missing))
		}
	}
	return e.level
}

// toSupply returns how long the rate takes for so many tokens, to the nearest nanosecond,
// so that 0.3/0.1 is 3 s and not a little more; tb.Never if no Duration can hold it.
func toSupply(l tb.Limit, tokens float64) time.Duration {
	ns := math.Round(tokens / float64(l.Tokens) * float64(l.Per))
	if ns >= float64(tb.Never) {
		return tb.Never
	}
	return time.Duration(ns)
}

func sum(a, b time.Duration) time.Duration {
	if a > tb.Never-b {
		return tb.Never
	}
	return a + b
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
