package outbound

import (
	"iter"
	"math"
	"net/http"
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

// families has the families that servers send. Of two with the same limit, the first counts.
var families = []family{
	// OpenAI, and the servers that follow it. The reset is the time until all is back.
	{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests",
		Requests, time.Minute},
	{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens",
		Tokens, time.Minute},
	// Anthropic. The reset is the instant at which all is back, to a second.
	{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining",
		"Anthropic-Ratelimit-Requests-Reset", Requests, time.Minute},
	{"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining",
		"Anthropic-Ratelimit-Tokens-Reset", Tokens, time.Minute},
	{"Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining",
		"Anthropic-Ratelimit-Input-Tokens-Reset", Tokens, time.Minute},
	{"Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining",
		"Anthropic-Ratelimit-Output-Tokens-Reset", Tokens, time.Minute},
	// The drafts before RateLimit; GitLab has an instant as its reset.
	{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", anyUnit, 0},
	// Discord; its X-RateLimit-Reset is the same by the server's clock.
	{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset-After", anyUnit, 0},
	// GitHub, Envoy, Reddit and most others.
	{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", anyUnit, 0},
	// X and Okta.
	{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", anyUnit, 0},
}

// retryFields has the fields with the wait of a refused request, and their units.
var retryFields = []struct {
	name string
	unit time.Duration // of a number
}{
	{"Retry-After-Ms", time.Millisecond}, // OpenAI and Azure
	{"X-Ms-Retry-After-Ms", time.Millisecond},
	{"Retry-After", time.Second},
}

// A number of this size or more is an instant since 1970 in that unit. A time until then would be
// 31 years or more.
var epochs = []struct {
	from float64
	unit time.Duration
}{
	{1e17, time.Nanosecond}, {1e14, time.Microsecond}, {1e11, time.Millisecond}, {1e9, time.Second},
}

// unknown is a number or time that a response does not have.
const unknown = -1

// notice is what a response says of one limit.
type notice struct {
	unit      Unit
	limit     float64
	window    time.Duration // that supplies the limit, or 0
	remaining float64
	wait      time.Duration // until the reset
	isWhole   bool          // the wait is rounded to seconds
	isGuess   bool          // the window is the wait, and so may be longer
}

func newNotice(u Unit) notice {
	return notice{unit: u, limit: unknown, remaining: unknown, wait: unknown}
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

// read reads a response that has arrived now. It uses the memory of buf. Unless isFull is true, it
// leaves out the limits that are not used up, if that saves time.
func read(status int, h http.Header, isFull bool, buf []notice) answer {
	r := reading{answer: answer{retry: unknown, notices: buf[:0]}, h: h}
	mayRefuse := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		status == http.StatusForbidden
	r.isFull = isFull || mayRefuse
	if mayRefuse {
		r.readRetry()
	} else if age := h["Age"]; len(age) > 0 && age[0] != "0" {
		return r.answer // of a cache, and about an earlier request
	}
	r.readLists()
	last := ""
	for i := range families {
		if f := &families[i]; f.remaining != last && r.readFamily(f) {
			last = f.remaining
		}
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
			if wait, _, ok := r.wait(line, f.unit); ok {
				r.retry = max(r.retry, wait)
			}
		}
		if r.retry != unknown {
			return
		}
	}
}

// readFamily reads three fields, and reports whether they are there. If a field is repeated, or is
// a list, the value that slows down counts.
func (r *reading) readFamily(f *family) bool {
	resets, remaining := r.h[f.reset], r.h[f.remaining]
	if resets == nil {
		return false
	}
	if !r.isFull && len(remaining) == 1 && isAboveZero(remaining[0]) {
		return true
	}
	n := newNotice(f.unit)
	for m := range members(remaining) {
		lessen(&n.remaining, m.name)
	}
	for _, line := range resets {
		if wait, isWhole, ok := r.wait(line, time.Second); ok && wait > n.wait {
			n.wait, n.isWhole = wait, isWhole
		}
	}
	for m := range members(r.h[f.limit]) {
		lessen(&n.limit, m.name)
		if q, ok := number(m.name); ok && q == n.limit && m.window() > 0 { // Envoy: 10, 10;w=1
			n.window = m.window()
		}
	}
	if n.window == 0 {
		n.window, n.isGuess = max(f.window, n.wait), f.window == 0
	}
	r.notices = append(r.notices, n)
	return true
}

// isAboveZero reports whether a text is a whole number above 0.
func isAboveZero(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < '0' || c > '9' {
			return false
		}
	}
	return text != "" && text[0] != '0'
}

// lessen makes n the number of a text if that is less.
func lessen(n *float64, text string) {
	if x, ok := number(text); ok && (*n == unknown || x < *n) {
		*n = x
	}
}

// readLists reads RateLimit and RateLimit-Policy: of the current draft (08 and later), which has
// lists of named limits, and of the drafts 03 to 07, in which RateLimit is a dictionary.
func (r *reading) readLists() {
	isZero := func(line string) bool { return strings.Contains(line, "=0") }
	if !r.isFull && !slices.ContainsFunc(r.h["Ratelimit"], isZero) {
		return
	}
	var names []string // of the notices
	for m := range members(r.h["Ratelimit-Policy"]) {
		n := newNotice(m.unit())
		lessen(&n.limit, m.name) // 100;w=60 in the older drafts
		lessen(&n.limit, m.param("q"))
		n.window = m.window()
		names, r.notices = append(names, m.name), append(r.notices, n)
	}
	for m := range members(r.h["Ratelimit"]) {
		i := slices.Index(names, m.name)
		if m.value != "" && len(names) > 0 { // limit=100, remaining=50, reset=5
			i = 0
		}
		if i < 0 {
			i = len(names)
			names, r.notices = append(names, m.name), append(r.notices, newNotice(m.unit()))
		}
		n := &r.notices[i]
		lessen(&n.remaining, m.param("r"))
		reset := m.param("t")
		switch m.name {
		case "limit":
			lessen(&n.limit, m.value)
		case "remaining":
			lessen(&n.remaining, m.value)
		case "reset":
			reset = m.value
		}
		if wait, isWhole, ok := r.wait(reset, time.Second); ok {
			n.wait, n.isWhole = wait, isWhole
		}
	}
}

// wait returns the time from the response until what a text says: a number, which is a time or an
// instant, a duration such as 6m0s, or a date. Of several with commas, the longest one counts.
// isWhole means that it is rounded to seconds.
func (r *reading) wait(text string, unit time.Duration) (d time.Duration, isWhole, ok bool) {
	text = strings.TrimSpace(text)
	if n, ok := number(text); ok {
		isWhole := unit == time.Second && n == math.Trunc(n)
		for _, e := range epochs {
			if n >= e.from {
				return seconds(n*e.unit.Seconds() - r.now()), isWhole, true
			}
		}
		return seconds(n * unit.Seconds()), isWhole, true
	}
	if d, err := time.ParseDuration(text); err == nil {
		return max(d, 0), false, true
	}
	t, err := http.ParseTime(text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err == nil {
		return seconds(unixSeconds(t) - r.now()), true, true
	}
	if !strings.Contains(text, ",") {
		return 0, false, false
	}
	for element := range strings.SplitSeq(text, ",") {
		if one, whole, isTime := r.wait(element, unit); isTime {
			d, isWhole, ok = max(d, one), whole, true
		}
	}
	return d, isWhole, ok
}

// now returns the clock of the server, so that it need not agree with ours. Without a Date it is
// ours.
func (r *reading) now() float64 {
	if r.sent == 0 {
		if t, err := http.ParseTime(r.h.Get("Date")); err == nil {
			r.sent = unixSeconds(t)
		} else {
			r.sent = unixSeconds(time.Now())
		}
	}
	return r.sent
}

func unixSeconds(t time.Time) float64 { return float64(t.Unix()) + float64(t.Nanosecond())/1e9 }

// seconds returns a time of 0 to 100 years. A float64 has instants to less than a microsecond.
func seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return time.Duration(min(max(s, 0), most) * 1e9).Round(time.Microsecond)
}

// number reads a decimal number of at least 0. A negative one is 0.
func number(text string) (n float64, ok bool) {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && !strings.ContainsRune(".eE+-", rune(c)) {
			return 0, false
		}
	}
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return max(n, 0), err == nil || math.IsInf(n, 0)
}

// member is an item of a list of structured fields (RFC 9651), or a pair of a dictionary.
type member struct{ name, value, params string }

// members returns the members of a field. It checks no syntax: a text that is none has strange
// members.
func members(lines []string) iter.Seq[member] {
	return func(yield func(member) bool) {
		for _, rest := range lines {
			for rest != "" {
				var m member
				m.name, rest = cut(rest, ',')
				m.name, m.params = cut(m.name, ';')
				m.name, m.value = cut(m.name, '=')
				m.name = strings.Trim(m.name, `"`)
				if !yield(m) {
					return
				}
			}
		}
	}
}

// cut cuts a text at the first separator outside of quotes.
func cut(text string, separator byte) (before, after string) {
	quoted, end := false, len(text)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			end, after = i, text[i+1:]
			i = len(text)
		}
	}
	return strings.TrimSpace(text[:end]), after
}

// param returns the value of a parameter, or "".
func (m *member) param(key string) string {
	for rest := m.params; rest != ""; {
		var p string
		p, rest = cut(rest, ';')
		if k, value := cut(p, '='); k == key {
			return strings.Trim(value, `" `)
		}
	}
	return ""
}

// window returns the parameter w, a time in seconds, or 0.
func (m *member) window() time.Duration {
	n, _ := number(m.param("w"))
	return seconds(n)
}

// unit returns what the limit of the member counts, by its unit or else its name.
func (m *member) unit() Unit {
	text := m.param("qu")
	if text == "" {
		text = m.name
	}
	text = strings.ToLower(text)
	switch {
	case strings.Contains(text, "token"):
		return Tokens
	case strings.Contains(text, "request"):
		return Requests
	}
	return anyUnit
}
