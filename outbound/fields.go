package outbound

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// family is three fields about one limit, in canonical form. What the reset is, its text says.
type family struct {
	limit, remaining, reset string
	unit                    Unit
	window                  time.Duration // of the limit if the reset is not later; 0 if not known
}

// families has the families that servers send.
var families = []family{
	// OpenAI, and the servers that follow it. The reset is the time until all is back.
	named("X-Ratelimit-%s-Requests", Requests, time.Minute),
	named("X-Ratelimit-%s-Tokens", Tokens, time.Minute),
	// Anthropic. The reset is the instant at which all is back, to a second.
	named("Anthropic-Ratelimit-Requests-%s", Requests, time.Minute),
	named("Anthropic-Ratelimit-Tokens-%s", Tokens, time.Minute),
	named("Anthropic-Ratelimit-Input-Tokens-%s", Tokens, time.Minute),
	named("Anthropic-Ratelimit-Output-Tokens-%s", Tokens, time.Minute),
	named("Ratelimit-%s", anyUnit, 0),    // the drafts before RateLimit, and GitLab
	named("X-Ratelimit-%s", anyUnit, 0),  // GitHub, Envoy, Reddit, Discord and most others
	named("X-Rate-Limit-%s", anyUnit, 0), // X and Okta
}

func named(form string, u Unit, window time.Duration) family {
	f := func(part string) string { return fmt.Sprintf(form, part) }
	return family{f("Limit"), f("Remaining"), f("Reset"), u, window}
}

// retryFields has the fields with the wait of a refused request, and the units of their numbers.
// The first one counts.
var retryFields = []struct {
	name string
	unit time.Duration
}{
	{"Retry-After-Ms", time.Millisecond}, // OpenAI and Azure
	{"X-Ms-Retry-After-Ms", time.Millisecond},
	{"Retry-After", time.Second},
}

// unknown is a number or time that a response does not have.
const unknown = -1

// notice is what a response says of one limit.
type notice struct {
	name      string // in RateLimit
	unit      Unit
	limit     float64
	window    time.Duration // that supplies the limit, or 0
	isGuess   bool          // the window is the wait, and so may be longer
	remaining float64
	wait      time.Duration // until the reset
}

// answer is what a response says.
type answer struct {
	isRefusal bool
	retry     time.Duration // the wait of a refusal
	notices   []notice
}

// reading reads the header of one response.
type reading struct {
	answer
	h      http.Header
	sent   float64 // by the clock of the server: Unix seconds, or 0 before they are needed
	isFull bool    // the limits that are not used up matter, too
}

// read reads a response that has arrived now. Unless isFull is true, it leaves out limits that are
// not used up, if that saves time.
func read(status int, h http.Header, isFull bool) answer {
	mayRefuse := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		status == http.StatusForbidden
	r := reading{answer: answer{retry: unknown}, h: h, isFull: isFull || mayRefuse}
	if mayRefuse {
		r.readRetry()
	} else if age := h["Age"]; len(age) > 0 && age[0] != "0" {
		return r.answer // of a cache, and about an earlier request
	}
	isZero := func(line string) bool { return strings.Contains(line, "=0") }
	if r.isFull || slices.ContainsFunc(h["Ratelimit"], isZero) {
		r.readList(h["Ratelimit-Policy"])
		r.readList(h["Ratelimit"])
	}
	for i := range families {
		r.readFamily(&families[i])
	}
	// 503 and 403 have other causes, too.
	r.isRefusal = status == http.StatusTooManyRequests || mayRefuse && (r.retry != unknown ||
		slices.ContainsFunc(r.notices, func(n notice) bool { return n.remaining == 0 }))
	return r.answer
}

// readRetry reads the wait of a refusal. Of several, the longest one counts.
func (r *reading) readRetry() {
	for _, f := range retryFields {
		for _, line := range r.h[f.name] {
			r.retry = max(r.retry, r.until(line, f.unit))
		}
		if r.retry != unknown {
			return
		}
	}
}

// readFamily reads three fields. If a field is repeated, or is a list, the value that slows down
// counts.
func (r *reading) readFamily(f *family) {
	remaining := r.h[f.remaining]
	if !r.isFull && (len(remaining) == 0 || len(remaining) == 1 && number(remaining[0]) > 0) {
		return
	}
	resets := r.h[f.reset]
	if after := r.h["X-Ratelimit-Reset-After"]; after != nil && f.reset == "X-Ratelimit-Reset" {
		resets = after // Discord: the other one is the same by the server's clock
	}
	n := notice{unit: f.unit, limit: unknown, remaining: unknown, wait: unknown}
	for _, line := range remaining {
		for text := range strings.SplitSeq(line, ",") {
			lessen(&n.remaining, text)
		}
	}
	for _, line := range resets {
		n.wait = max(n.wait, r.until(line, time.Second))
	}
	if n.wait == unknown {
		return
	}
	for _, line := range r.h[f.limit] {
		q := 0.0
		for _, x := range items(line) {
			if !x.isParameter {
				q = number(x.key)
				lessen(&n.limit, x.key)
			} else if x.key == "w" && q == n.limit { // Envoy: 10, 10;w=1
				n.window = seconds(number(x.value))
			}
		}
	}
	if n.window == 0 {
		n.window, n.isGuess = max(f.window, n.wait), f.window == 0
	}
	r.notices = append(r.notices, n)
}

// readList reads RateLimit or RateLimit-Policy: of the current draft (08 and later), which has
// lists of named limits, and of the drafts 03 to 07, in which RateLimit is a dictionary.
func (r *reading) readList(lines []string) {
	for _, line := range lines {
		var n *notice
		for _, x := range items(line) {
			if !x.isParameter {
				n = r.noticeOf(x.key, x.value != "")
				lessen(&n.limit, x.key) // 100;w=60 in the older drafts
			}
			switch x.key {
			case "q", "limit":
				lessen(&n.limit, x.value)
			case "r", "remaining":
				lessen(&n.remaining, x.value)
			case "t", "reset":
				n.wait = max(n.wait, r.until(x.value, time.Second))
			case "w":
				n.window = seconds(number(x.value))
			case "qu":
				n.unit = unitOf(x.value)
			}
		}
	}
}

// noticeOf returns the notice with a name. The pairs of a dictionary are about the first limit.
func (r *reading) noticeOf(name string, isPair bool) *notice {
	for i := range r.notices {
		if n := &r.notices[i]; isPair || n.name == name {
			return n
		}
	}
	n := notice{name: name, unit: unitOf(name), limit: unknown, remaining: unknown, wait: unknown}
	r.notices = append(r.notices, n)
	return &r.notices[len(r.notices)-1]
}

// unitOf returns what a limit counts, by its unit or else its name.
func unitOf(text string) Unit {
	text = strings.ToLower(text)
	switch {
	case strings.Contains(text, "token"):
		return Tokens
	case strings.Contains(text, "request"):
		return Requests
	}
	return anyUnit
}

// item is a member of a list or a dictionary of structured fields (RFC 9651), or a parameter of the
// member before. The key of a member may have quotes.
type item struct {
	isParameter bool
	key, value  string
}

var syntax = regexp.MustCompile(
	`(^|[,;])\s*("(?:[^"\\]|\\.)*"|[^",;=]*)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^",;]*))?`)

// items returns the items of a field. A text that has another syntax has strange items.
func items(line string) (all []item) {
	for _, m := range syntax.FindAllStringSubmatch(line, -1) {
		all = append(all, item{m[1] == ";", strings.TrimSpace(m[2]), strings.Trim(m[3], `" `)})
	}
	return all
}

// until returns the time from the response until what a text says, or unknown. The text is a number,
// which is a time or an instant, a duration such as 6m0s, or a date. Of several with commas, the
// longest one counts.
func (r *reading) until(text string, unit time.Duration) time.Duration {
	text = strings.TrimSpace(text)
	if n := number(text); n >= 1e9 { // an instant since 1970: a time would be 31 years or more
		for range 3 { // from seconds to nanoseconds
			if n >= 1e11 {
				n /= 1000
			}
		}
		return seconds(n - r.now())
	} else if n != unknown {
		return seconds(n * unit.Seconds())
	}
	if d, err := time.ParseDuration(text); err == nil {
		return seconds(d.Seconds())
	}
	t, err := http.ParseTime(text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err == nil {
		return seconds(unixSeconds(t) - r.now())
	}
	var longest time.Duration = unknown
	if strings.Contains(text, ",") {
		for one := range strings.SplitSeq(text, ",") {
			longest = max(longest, r.until(one, unit))
		}
	}
	return longest
}

// now returns the clock of the server, so that it need not agree with ours. Without a Date it is
// ours.
func (r *reading) now() float64 {
	if r.sent == 0 {
		t, err := http.ParseTime(r.h.Get("Date"))
		if err != nil {
			t = time.Now()
		}
		r.sent = unixSeconds(t)
	}
	return r.sent
}

func unixSeconds(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// seconds returns a time of 0 to 100 years. A float64 has instants to less than a microsecond.
func seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(max(s, 0), most) * 1e9).Round(time.Microsecond)
}

// number returns the decimal number of a text, or unknown. A negative one is 0.
func number(text string) float64 {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseFloat(text, 64)
	if strings.Trim(text, "0123456789.eE+-") != "" || err != nil && !math.IsInf(n, 0) {
		return unknown
	}
	return max(n, 0)
}

// lessen makes n the number of a text if that is less.
func lessen(n *float64, text string) {
	if x := number(text); x != unknown && (*n == unknown || x < *n) {
		*n = x
	}
}
