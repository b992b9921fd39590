package httplimit

import (
	"math"
	"math/big"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The names of fields are as net/http writes them, and the parameters are those of
// draft-ietf-httpapi-ratelimit-headers-11.
const (
	fieldRateLimit  = "Ratelimit"
	fieldPolicy     = "Ratelimit-Policy"
	fieldLimit      = "Ratelimit-Limit"
	fieldRemaining  = "Ratelimit-Remaining"
	fieldReset      = "Ratelimit-Reset"
	fieldRetryAfter = "Retry-After"

	paramRemaining = "r"
	paramReset     = "t"
	paramQuota     = "q"
	paramWindow    = "w"

	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
)

// ruleText is the text of a rule's fields that is the same in every response.
type ruleText struct {
	label  string // the name under which clients see the rule
	quota  string // the capacity
	item   string // the start of the rule's item in RateLimit
	policy string // the rule's item in RateLimit-Policy
	slow   bool   // less than a token a second
}

func newRuleText(label string, r *Rule) ruleText {
	l := ruleText{label: label, quota: strconv.Itoa(r.Limit.Capacity)}
	name := strconv.Quote(label)
	l.item = name + ";" + paramRemaining + "="
	l.policy = name + ";" + paramQuota + "=" + l.quota + ";" + paramWindow + "=" + window(r)
	// Tokens/Per is less than one a second if Tokens is less than the seconds of Per.
	l.slow = r.Limit.Tokens < ceilSeconds(r.Limit.Per)
	return l
}

// maxInteger is the largest integer of a structured field (RFC 9651, 3.3.1).
const maxInteger = 999_999_999_999_999

// window returns the seconds, rounded up, in which the rate supplies the capacity, but at most
// maxInteger, which is 31 million years.
func window(r *Rule) string {
	n := new(big.Int).Mul(big.NewInt(int64(r.Limit.Capacity)), big.NewInt(int64(r.Limit.Per)))
	d := new(big.Int).Mul(big.NewInt(r.Limit.Tokens), big.NewInt(int64(time.Second)))
	n.Add(n, d).Sub(n, big.NewInt(1)).Quo(n, d)
	if most := big.NewInt(maxInteger); n.Cmp(most) > 0 {
		n = most
	}
	return n.String()
}

// grant sets the fields of a granted request, and returns the decision of the binding rule.
func (c *call) grant() Decision {
	binding := c.binding()
	if binding == nil {
		return Decision{}
	}
	if !c.l.silent {
		c.setGranted(binding)
	}
	c.runHook(c.l.hooks.Granted, binding, nil)
	return binding.toDecision()
}

// binding returns the rule that comes closest to refusing a granted request: the first of the
// rules with the fewest tokens left. It is nil if no rule applied or a limiter failed.
func (c *call) binding() (binding *entry) {
	for e := range c.enforced() {
		if !c.failedOpen && (binding == nil || e.decision.Remaining < binding.decision.Remaining) {
			binding = e
		}
	}
	return binding
}

func (c *call) setGranted(binding *entry) {
	var start, end int // of binding's tokens
	for e := range c.enforced() {
		from, to := c.appendItem(e, e.decision.Remaining, c.reset(e))
		if e == binding {
			start, end = from, to
		}
	}
	list := string(c.text)
	f := fields{c.w.Header(), make([]string, 0, 4)}
	f.set(fieldRateLimit, list)
	f.setLegacy(binding.quota, list[start:end], strconv.FormatInt(c.reset(binding), 10))
	c.setOptIn(&f, binding, list[start:end], 0)
}

// refuse answers a request that was refused. The binding rule, whose decision it returns, is
// the one with the longest wait.
func (c *call) refuse() Decision {
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
	retry := c.retryAfter(max(1, ceilSeconds(longest)))
	for e := range c.enforced() {
		if e.refused {
			c.appendItem(e, 0, retry)
		}
	}
	f := fields{c.w.Header(), make([]string, 0, 6)}
	seconds := strconv.FormatInt(retry, 10)
	f.set(fieldRetryAfter, seconds)
	f.setLegacy(binding.quota, "0", seconds)
	f.set(fieldRateLimit, string(c.text))
	if c.l.reason != "" {
		f.set(c.l.reason, "token_bucket_exceeded")
	}
	c.setOptIn(&f, binding, "0", retry)
	c.runHook(c.l.hooks.Refused, binding, nil)

	cost := strconv.FormatFloat(binding.cost, 'g', -1, 64)
	detail := "Rule " + binding.label + " has too few tokens left for this request, which costs " +
		cost + "."
	if binding.cost > float64(binding.Limit.Capacity) {
		detail = "Rule " + binding.label + " never has more than " + binding.quota +
			" tokens. This request costs " + cost + ", so it can never fit."
	}
	c.problem(http.StatusTooManyRequests, detail)
	return binding.toDecision()
}

// reject answers a request that lacks a key, and returns the decision of the rule that insists
// on the key.
func (c *call) reject() Decision {
	e := c.firstLackingKey()
	e.decision = tb.Decision{RetryAfter: tb.Never}
	c.runHook(c.l.hooks.Refused, e, nil)
	c.problem(http.StatusBadRequest, "Rule "+e.label+" needs "+e.missingKey+".")
	return e.toDecision()
}

// setOptIn sets the fields that are sent only if an option demands them.
func (c *call) setOptIn(f *fields, binding *entry, remaining string, retry int64) {
	if c.l.sendPolicy {
		c.text = c.text[:0]
		for e := range c.enforced() {
			c.appendSeparator()
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

// fields sets fields of a header, with one array for all their values.
type fields struct {
	header http.Header
	values []string
}

func (f *fields) set(name, value string) {
	f.values = append(f.values, value)
	n := len(f.values)
	f.header[name] = f.values[n-1 : n : n]
}

// setLegacy sets the three fields of older drafts, which are about one rule.
func (f *fields) setLegacy(limit, remaining, reset string) {
	f.set(fieldLimit, limit)
	f.set(fieldRemaining, remaining)
	f.set(fieldReset, reset)
}

// appendItem appends e's item of RateLimit to c.text, and returns where the tokens are in it.
func (c *call) appendItem(e *entry, remaining int, reset int64) (start, end int) {
	c.appendSeparator()
	c.text = append(c.text, e.item...)
	start = len(c.text)
	c.text = strconv.AppendInt(c.text, int64(remaining), 10)
	end = len(c.text)
	c.text = append(c.text, ";"+paramReset+"="...)
	c.text = strconv.AppendInt(c.text, reset, 10)
	return start, end
}

// appendSeparator appends a comma if c.text has an item.
func (c *call) appendSeparator() {
	if len(c.text) > 0 {
		c.text = append(c.text, ", "...)
	}
}

// problem answers with a body after RFC 9457. Labels and names of keys are printable ASCII, and
// a quoted string of that is the same in Go, JSON and a structured field.
func (c *call) problem(status int, detail string) {
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	c.w.WriteHeader(status)
	if c.r.Method == http.MethodHead {
		return
	}
	kind, title := "about:blank", http.StatusText(status)
	if status == http.StatusTooManyRequests {
		kind, title = quotaExceeded, "Quota exceeded"
	}
	b := append(append(c.text[:0], `{"type":"`...), kind...)
	b = append(append(b, `","title":"`...), title...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(status), 10)
	b = strconv.AppendQuote(append(b, `,"detail":`...), detail)
	if status == http.StatusTooManyRequests {
		b = append(b, `,"violated-policies":`...)
		separator := byte('[')
		for e := range c.enforced() {
			if e.refused {
				b = strconv.AppendQuote(append(b, separator), e.label)
				separator = ','
			}
		}
		b = append(b, ']')
	}
	b = append(b, "}\n"...)
	c.text = b
	_, _ = c.w.Write(b) // an error means that the client has disconnected
}

// reset returns the seconds until e's bucket has one more whole token, at least 1.
func (c *call) reset(e *entry) int64 {
	if !e.slow {
		return 1
	}
	return max(1, ceilSeconds(c.level(e).NextToken))
}

// wait returns (cost − tokens)/rate, also for a cost above the capacity, although no wait helps
// then.
func (c *call) wait(e *entry) time.Duration {
	over := e.cost - float64(e.Limit.Capacity)
	if over <= 0 {
		return e.decision.RetryAfter
	}
	full, rest := c.level(e).Full, supplyTime(e.Limit, over)
	return full + min(rest, tb.Never-full)
}

// level returns how full e's bucket is after the decision. It asks the bucket once. If the
// limiter reports no levels, it returns the longest times that agree with the decision.
func (c *call) level(e *entry) tb.Level {
	if e.level != (tb.Level{}) { // which no bucket has
		return e.level
	}
	var err error
	if e.level, err = e.charge.(leveler).Level(c.now); err != nil {
		e.level.Tokens = float64(e.decision.Remaining)
		if missing := e.Limit.Capacity - e.decision.Remaining; missing > 0 {
			e.level.NextToken = supplyTime(e.Limit, 1)
			e.level.Full = supplyTime(e.Limit, float64(missing))
		}
	}
	return e.level
}

// supplyTime returns how long the rate takes to supply tokens, to the nearest nanosecond, so
// that 0.3/0.1 is 3 s and not a little more. It is tb.Never if no Duration can hold it.
func supplyTime(l tb.Limit, tokens float64) time.Duration {
	ns := math.Round(tokens / float64(l.Tokens) * float64(l.Per))
	if ns >= float64(tb.Never) {
		return tb.Never
	}
	return time.Duration(ns)
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
