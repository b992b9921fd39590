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

const mostNotices = 64 // with names, in one response

// unknown is a number or time that a response does not have.
const unknown = -1

// notice is what a response says of one limit.
type notice struct {
	name      string // in RateLimit
	unit      Unit
	limit     float64
	window    time.Duration // that supplies the limit, or 0
	remaining float64
	wait      time.Duration // until the reset
}

// answer is what a response says.
type answer struct {
	isRefusal bool
	retry     time.Duration // the wait of a refusal
	notices   []*notice

	header http.Header
	sent   float64 // by the clock of the server: Unix seconds, or 0 before they are needed
}

// read reads a response that has arrived now. If isFull is false, and it is not a refusal, only the
// limits that are used up matter.
func read(status int, h http.Header, isFull bool) (x answer) {
	x = answer{retry: unknown, header: h}
	mayRefuse := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		status == http.StatusForbidden
	if mayRefuse {
		isFull = true
		x.retry = max(x.longest("Retry-After-Ms", time.Millisecond), // OpenAI and Azure
			x.longest("X-Ms-Retry-After-Ms", time.Millisecond))
		if x.retry == unknown {
			x.retry = x.longest("Retry-After", time.Second)
		}
	}
	isZero := func(line string) bool { return strings.Contains(line, "=0") }
	if isFull || slices.ContainsFunc(h["Ratelimit"], isZero) {
		x.readList(h["Ratelimit-Policy"])
		x.readList(h["Ratelimit"])
	}
	for i := range families {
		f := &families[i]
		if left := h[f.remaining]; isFull || len(left) > 0 && !isLeft(left) {
			x.readFamily(f)
		}
	}
	if len(x.notices) > 0 && !mayRefuse && number(h.Get("Age")) > 0 {
		return answer{retry: unknown} // of a cache, and about an earlier request
	}
	// 503 and 403 have other causes, too.
	isEmpty := func(n *notice) bool { return n.remaining == 0 }
	x.isRefusal = status == http.StatusTooManyRequests ||
		mayRefuse && (x.retry != unknown || slices.ContainsFunc(x.notices, isEmpty))
	return x
}

// isLeft reports whether a field is one number that is plainly above 0.
func isLeft(lines []string) bool {
	if len(lines) != 1 || lines[0] == "" || strings.Contains(lines[0], ",") {
		return false
	}
	first := lines[0][0]
	return '1' <= first && first <= '9'
}

// readFamily reads three fields. If a field is repeated, or is a list, the value that slows down
// counts.
func (x *answer) readFamily(f *family) {
	n := &notice{unit: f.unit, limit: unknown, remaining: unknown}
	if n.wait = x.longest(f.reset+"-After", time.Second); n.wait == unknown { // Discord
		n.wait = x.longest(f.reset, time.Second)
	}
	if n.wait == unknown {
		return
	}
	for _, line := range x.header[f.remaining] {
		for text := range strings.SplitSeq(line, ",") {
			lessen(&n.remaining, text)
		}
	}
	for _, line := range x.header[f.limit] {
		q := 0.0
		for _, i := range items(line) {
			if !i.isParameter {
				q = number(i.key)
				lessen(&n.limit, i.key)
			} else if i.key == "w" && q == n.limit { // Envoy: 10, 10;w=1
				n.window = seconds(number(i.value))
			}
		}
	}
	if n.window == 0 && x.header["Ratelimit-Policy"] == nil {
		n.window = max(f.window, n.wait) // a guess: it may be longer
	}
	x.notices = append(x.notices, n)
}

// readList reads RateLimit or RateLimit-Policy: of the current draft (08 and later), which has
// lists of named limits, and of the drafts 03 to 07, in which RateLimit is a dictionary.
func (x *answer) readList(lines []string) {
	for _, line := range lines {
		var n *notice
		for _, i := range items(line) {
			if !i.isParameter {
				n = x.noticeOf(i.key, i.value != "")
				lessen(&n.limit, i.key) // 100;w=60 in the older drafts
			}
			switch i.key {
			case "q", "limit":
				lessen(&n.limit, i.value)
			case "r", "remaining":
				lessen(&n.remaining, i.value)
			case "t", "reset":
				n.wait = max(n.wait, x.until(i.value, time.Second))
			case "w":
				n.window = seconds(number(i.value))
			case "qu":
				n.unit = unitOf(i.value)
			}
		}
	}
}

// noticeOf returns the notice with a name. The pairs of a dictionary are about the first limit.
func (x *answer) noticeOf(name string, isPair bool) *notice {
	for _, n := range x.notices {
		if isPair || n.name == name {
			return n
		}
	}
	n := &notice{name: name, unit: unitOf(name), limit: unknown, remaining: unknown, wait: unknown}
	if len(x.notices) < mostNotices {
		x.notices = append(x.notices, n)
	}
	return n
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

// longest returns the longest time in the lines of a field: see until.
func (x *answer) longest(field string, unit time.Duration) time.Duration {
	var d time.Duration = unknown
	for _, line := range x.header[field] {
		d = max(d, x.until(line, unit))
	}
	return d
}

// until returns the time from the response until what a text says, or unknown. The text is a
// number, which is a time or an instant, a duration such as 6m0s, or a date. Of several with
// commas, the longest one counts.
func (x *answer) until(text string, unit time.Duration) time.Duration {
	text = strings.TrimSpace(text)
	if n := number(text); n >= 1e9 { // an instant since 1970: a time would be 31 years or more
		for range 3 { // from seconds to nanoseconds
			if n >= 1e11 {
				n /= 1000
			}
		}
		return seconds(n - x.now())
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
		return seconds(float64(t.UnixMicro())/1e6 - x.now())
	}
	var d time.Duration = unknown
	if strings.Contains(text, ",") {
		for one := range strings.SplitSeq(text, ",") {
			d = max(d, x.until(one, unit))
		}
	}
	return d
}

// now returns the clock of the server, so that it need not agree with ours. Without a Date it is
// ours.
func (x *answer) now() float64 {
	if x.sent == 0 {
		t, err := http.ParseTime(x.header.Get("Date"))
		if err != nil {
			t = time.Now()
		}
		x.sent = float64(t.UnixMicro()) / 1e6
	}
	return x.sent
}

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
