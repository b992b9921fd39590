package httplimit

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/fields"
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
	f.isBound = f.isTighter(binding.decision.Remaining)
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
	isBound bool // an outer limiter has set the fields that are there once, and is tighter
}

// isTighter reports whether an outer limiter has set fields and has no more tokens left.
func (f *fieldWriter) isTighter(remaining int) bool {
	values := f.header[fieldRemaining]
	if len(values) == 0 {
		return false
	}
	outer, err := strconv.Atoi(values[0])
	return err == nil && outer <= remaining
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

// DropFields drops the fields in which an upstream reports its own limits and which can be
// there only once: RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and every field that
// starts with X-RateLimit-. RateLimit and RateLimit-Policy are lists, so the upstream's items
// stay. It is for ModifyResponse of an httputil.ReverseProxy behind Middleware, which would add the
// upstream's fields to the limiter's.
func DropFields(h http.Header) {
	const legacy = "X-RateLimit-"
	for name := range h {
		if strings.EqualFold(name, fieldLimit) || strings.EqualFold(name, fieldRemaining) ||
			strings.EqualFold(name, fieldReset) ||
			len(name) >= len(legacy) && strings.EqualFold(name[:len(legacy)], legacy) {
			delete(h, name)
		}
	}
}
