package httplimit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/fields"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The names of fields are as net/http writes them. Their parameters come from
// draft-ietf-httpapi-ratelimit-headers-11.
const (
	fieldRateLimit = "Ratelimit"
	fieldPolicy    = "Ratelimit-Policy"
	fieldLimit     = "Ratelimit-Limit"
	fieldRemaining = "Ratelimit-Remaining"
	fieldReset     = "Ratelimit-Reset"

	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// grant sets the fields of a granted request, and returns the decision of the binding rule and the
// settlement. Without a settlement, grant ends c.
func (c *call) grant(observed bool) (d Decision, s *Settlement) {
	if binding := c.binding(); binding != nil {
		if c.header != nil && !c.policy.fields.OnlyRefused {
			c.setGranted(binding)
		}
		c.runHook(c.l.hooks.Granted, binding, nil)
		d = binding.toDecision()
	}
	if s = c.newSettlement(observed); s == nil {
		c.end()
	}
	return d, s
}

// binding returns the rule that comes closest to refusing a granted request: the first of the
// rules with the fewest tokens left, and of those the one with the longest delay. It is nil if no
// rule applied or the store failed.
func (c *call) binding() (binding *entry) {
	if c.failedOpen {
		return nil
	}
	for e := range c.enforced() {
		if binding == nil || e.decision.Remaining < binding.decision.Remaining ||
			e.decision.Remaining == binding.decision.Remaining && e.delay > binding.delay {
			binding = e
		}
	}
	return binding
}

func (c *call) setGranted(binding *entry) {
	var start, end int // of binding's tokens
	for e := range c.enforced() {
		left := e.decision.Remaining
		reset := max(c.reset(e), e.text.Sustained(uint64(left)))
		var from, to int
		c.text, from, to = e.text.AppendItem(c.text, int64(left), reset)
		if e == binding {
			start, end = from, to
		}
	}
	list := string(c.text)
	f := fieldWriter{header: c.header, values: make([]string, 0, 4)}
	if outer := f.header[fieldRemaining]; len(outer) > 0 {
		left, err := strconv.Atoi(outer[0])
		f.isBound = err == nil && left <= binding.decision.Remaining
	}
	f.add(fieldRateLimit, list)
	if !f.isBound {
		f.setLegacy(binding.text.Quota, list[start:end], strconv.FormatInt(c.reset(binding), 10))
	}
	c.setOptIn(&f, binding, list[start:end], 0)
}

func (c *call) setRefused(binding *entry, retry int64) {
	for e := range c.enforced() {
		if e.refused {
			c.text, _, _ = e.text.AppendItem(c.text, 0, retry)
		}
	}
	f := fieldWriter{header: c.header, values: make([]string, 0, 6)}
	seconds := strconv.FormatInt(retry, 10)
	f.set(fieldRetryAfter, seconds)
	f.setLegacy(binding.text.Quota, "0", seconds)
	f.add(fieldRateLimit, string(c.text))
	if reason := c.policy.fields.Reason; reason != "" {
		f.set(reason, "token_bucket_exceeded")
	}
	c.setOptIn(&f, binding, "0", retry)
}

func (c *call) setOptIn(f *fieldWriter, binding *entry, remaining string, retry int64) {
	if c.policy.fields.Policy {
		c.text = c.text[:0]
		for e := range c.enforced() {
			c.text = e.text.AppendPolicy(c.text)
		}
		f.add(fieldPolicy, string(c.text))
	}
	isSent := c.policy.fields.XRateLimit || len(f.header["X-Ratelimit-Limit"]) > 0 // by an outer one
	if isSent && !f.isBound {
		resetAt := fields.ResetAt(c.now, c.level(binding).Full, retry)
		f.set("X-Ratelimit-Limit", binding.text.Quota)
		f.set("X-Ratelimit-Remaining", remaining)
		f.set("X-Ratelimit-Reset", strconv.FormatInt(resetAt, 10))
	}
}

// fieldWriter sets fields of a header, with one array for all their values.
type fieldWriter struct {
	header  http.Header
	values  []string
	isBound bool // an outer limiter has set the fields that are there once, and no more tokens left
}

// add adds items to a list, in which an outer limiter may have items.
func (f *fieldWriter) add(name, items string) {
	if outer := f.header[name]; len(outer) > 0 {
		items = strings.Join(outer, ", ") + ", " + items
	}
	f.set(name, items)
}

func (f *fieldWriter) set(name, value string) {
	f.values = append(f.values, value)
	n := len(f.values)
	f.header[name] = f.values[n-1 : n : n]
}

// setLegacy sets the three fields of older drafts, which are about one rule.
func (f *fieldWriter) setLegacy(limit, remaining, reset string) {
	f.set(fieldLimit, limit)
	f.set(fieldRemaining, remaining)
	f.set(fieldReset, reset)
}

// appendQuoted appends printable ASCII as a string of JSON. It is what strconv.AppendQuote appends,
// which takes ten times as long, because it looks at each character as a rune.
func appendQuoted(b []byte, s string) []byte {
	if strings.IndexByte(s, '"') >= 0 || strings.IndexByte(s, '\\') >= 0 {
		return strconv.AppendQuote(b, s)
	}
	return append(append(append(b, '"'), s...), '"')
}

// write writes the answer with a body after RFC 9457, and without one to a client that has
// disconnected. Labels and names of keys are printable ASCII.
func (c *call) write(status int, detail string) {
	if status == statusClientGone {
		c.w.WriteHeader(status)
		return
	}
	values := []string{"no-store", "application/problem+json"}
	c.header["Cache-Control"], c.header["Content-Type"] = values[:1:1], values[1:]
	c.w.WriteHeader(status)
	if c.r.Method == http.MethodHead {
		return
	}
	kind, title := "about:blank", http.StatusText(status)
	switch status {
	case http.StatusTooManyRequests:
		kind, title = quotaExceeded, "Quota exceeded"
	case http.StatusServiceUnavailable:
		kind, title = reducedCapacity, "Temporary reduced capacity"
	}
	b := append(append(c.text[:0], `{"type":"`...), kind...)
	b = append(append(b, `","title":"`...), title...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(status), 10)
	b = appendQuoted(append(b, `,"detail":`...), detail)
	if status == http.StatusTooManyRequests {
		b = append(b, `,"violated-policies":`...)
		separator, noWaitHelps := byte('['), false
		for e := range c.enforced() {
			if e.refused {
				b = appendQuoted(append(b, separator), e.label)
				separator = ','
				noWaitHelps = noWaitHelps || e.neverFits()
			}
		}
		b = append(b, ']')
		if noWaitHelps {
			b = append(b, `,"retryable":false`...)
		}
	}
	b = append(b, "}\n"...)
	c.text = b
	_, _ = c.w.Write(b) // an error means that the client has disconnected
}

// DropFields drops the fields in which an upstream reports its own limits and which can be there
// only once: RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and all that start with
// X-RateLimit-. RateLimit and RateLimit-Policy are lists, so the upstream's items stay. It is for
// ModifyResponse of an httputil.ReverseProxy, which would add them to what Middleware has set.
func DropFields(h http.Header) {
	for name := range h {
		switch canonical := http.CanonicalHeaderKey(name); {
		case canonical == fieldLimit, canonical == fieldRemaining, canonical == fieldReset,
			strings.HasPrefix(canonical, "X-Ratelimit-"):
			delete(h, name)
		}
	}
}

// failureRetry is the Retry-After, in seconds and without jitter, if the store failed.
const failureRetry = 4

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
	case early:
		return nil, http.StatusTooEarly, "The address of early data may be forged."
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
		c.setRefused(binding, c.retryAfter(ceilSeconds(longest)))
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
