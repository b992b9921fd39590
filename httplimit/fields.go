package httplimit

import (
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
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

// labels is what fields say of a rule and is always the same.
type labels struct {
	label  string // the name under which clients see the rule
	quota  string // the capacity
	item   string // the start of its item in RateLimit
	policy string // its item in RateLimit-Policy
	slow   bool   // less than a token a second
}

func newLabels(label string, r *Rule) labels {
	l := labels{label: label, quota: strconv.Itoa(r.Limit.Capacity)}
	name := strconv.Quote(label)
	l.item = name + ";" + paramRemaining + "="
	l.policy = name + ";" + paramQuota + "=" + l.quota + ";" + paramWindow + "=" + window(r)
	// Tokens/Per is less than one a second if Tokens is less than the seconds of Per.
	l.slow = r.Limit.Tokens < ceilSeconds(r.Limit.Per)
	return l
}

// maxInteger is the largest integer of a structured field (RFC 9651, 3.3.1).
const maxInteger = 999_999_999_999_999

// window returns the seconds, rounded up, in which the rate supplies the capacity. Those
// that no field can hold, beyond 31 million years, are the most that one can.
func window(r *Rule) string {
	n := new(big.Int).Mul(big.NewInt(int64(r.Limit.Capacity)), big.NewInt(int64(r.Limit.Per)))
	d := new(big.Int).Mul(big.NewInt(r.Limit.Tokens), big.NewInt(int64(time.Second)))
	n.Add(n, d).Sub(n, big.NewInt(1)).Quo(n, d)
	if most := big.NewInt(maxInteger); n.Cmp(most) > 0 {
		n = most
	}
	return n.String()
}

// fields sets fields of a header, with one array for all their values.
type fields struct {
	header http.Header
	values []string
}

func newFields(h http.Header, n int) fields { return fields{h, make([]string, 0, n)} }

func (f *fields) set(name, value string) {
	f.values = append(f.values, value)
	n := len(f.values)
	f.header[name] = f.values[n-1 : n : n]
}

func (f *fields) triple(limit, remaining, reset string) {
	f.set(fieldLimit, limit)
	f.set(fieldRemaining, remaining)
	f.set(fieldReset, reset)
}

// item appends an item of RateLimit to c.text, and returns where in it the tokens are.
func (c *call) item(e *entry, remaining int, reset int64) (start, end int) {
	c.separate()
	c.text = append(c.text, e.item...)
	start = len(c.text)
	c.text = strconv.AppendInt(c.text, int64(remaining), 10)
	end = len(c.text)
	c.text = append(c.text, ";"+paramReset+"="...)
	c.text = strconv.AppendInt(c.text, reset, 10)
	return start, end
}

// separate appends what is between the items of a list.
func (c *call) separate() {
	if len(c.text) > 0 {
		c.text = append(c.text, ", "...)
	}
}

// ModifyResponse is for the field of that name in httputil.ReverseProxy, which adds the
// fields of the upstream to those that are set. If some are, because a rule applied to the
// request, it calls DropFields.
func ModifyResponse(r *http.Response) error {
	c, ok := r.Request.Context().Value(decisionKey{}).(*decisionContext)
	if ok && !c.silent {
		DropFields(r.Header)
	}
	return nil
}

// DropFields drops what an upstream says of its own limits and can only be there once:
// RateLimit-Limit, -Remaining and -Reset and everything that starts with X-RateLimit-.
// RateLimit and RateLimit-Policy are lists, in which the upstream's items stay.
func DropFields(h http.Header) {
	for name := range h {
		if isOnce(name) {
			delete(h, name)
		}
	}
}

func isOnce(name string) bool {
	const legacy = "X-RateLimit-"
	switch {
	case len(name) < len(legacy): // the shortest of them
		return false
	case strings.EqualFold(name[:len(legacy)], legacy):
		return true
	}
	return strings.EqualFold(name, fieldLimit) || strings.EqualFold(name, fieldRemaining) ||
		strings.EqualFold(name, fieldReset)
}
