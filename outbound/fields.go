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

	"github.com/seed-181794aa/ratelimit/tb"
)

// family has the names of the fields about one limit, in canonical form, or of lists if it has no
// reset. A form that names the unit is about a minute, if the reset is not later.
type family struct{ form, limit, remaining, reset string }

var families = []family{
	// The draft since 03. A pair of its dictionary is about the limit that is read first.
	{limit: "Ratelimit-Policy", remaining: "Ratelimit"},
	// OpenAI, and the servers that follow it. The reset is the time until all is back.
	named("X-Ratelimit-%s-Requests"), named("X-Ratelimit-%s-Tokens"),
	// Anthropic. The reset is the instant at which all is back, to a second.
	named("Anthropic-Ratelimit-Requests-%s"), named("Anthropic-Ratelimit-Tokens-%s"),
	named("Anthropic-Ratelimit-Input-Tokens-%s"), named("Anthropic-Ratelimit-Output-Tokens-%s"),
	named("Ratelimit-%s"),    // the drafts before RateLimit, and GitLab
	named("X-Ratelimit-%s"),  // GitHub, Envoy, Reddit, Discord and most others
	named("X-Rate-Limit-%s"), // X and Okta
}

func named(form string) family {
	f := func(part string) string { return fmt.Sprintf(form, part) }
	return family{form, f("Limit"), f("Remaining"), f("Reset")}
}

const mostItems = 256 // of a field

var infinite = math.Inf(1) // a number that a response does not have

const unknown time.Duration = -1 // a time that it does not have

type notice struct {
	name      string
	unit      Unit
	limit     float64
	window    time.Duration // that supplies the limit, or 0
	remaining float64
	wait      time.Duration // until the reset
}

func newNotice(name string) *notice {
	return &notice{
		name: name, unit: unitOf(name), limit: infinite, remaining: infinite, wait: unknown,
	}
}

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

type answer struct {
	isRefusal bool
	retry     time.Duration // the wait of a refusal
	notices   []*notice

	header http.Header
	sent   float64 // by the clock of the server, so that it need not agree with ours: Unix seconds
}

// read reads a response that has arrived now. Unless it learns, it reads only a response that may
// be a refusal, or says that a limit is used up.
func read(status int, h http.Header, learns bool) answer {
	x := answer{retry: unknown, header: h}
	mayRefuse := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable ||
		status == http.StatusForbidden || status == 529 // Anthropic and Notion: overloaded
	if !mayRefuse && !learns && hasLeft(h) {
		return x
	}
	if age := number(h.Get("Age")); !mayRefuse && age > 0 && age < infinite {
		return x // of a cache, and about an earlier request
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		sent = time.Now()
	}
	x.sent = secondsOf(sent)
	if mayRefuse {
		n := newNotice("")
		x.add(n, "Retry-After-Ms", "milliseconds") // OpenAI and Azure
		x.add(n, "X-Ms-Retry-After-Ms", "milliseconds")
		if n.wait == unknown {
			x.add(n, "Retry-After", "reset")
		}
		x.retry = n.wait
	}
	for i := range families {
		x.addFamily(&families[i])
	}
	// 503, 529 and 403 have other causes, too.
	isEmpty := func(n *notice) bool { return n.remaining == 0 && n.wait != unknown }
	x.isRefusal = status == http.StatusTooManyRequests ||
		mayRefuse && (x.retry != unknown || slices.ContainsFunc(x.notices, isEmpty))
	return x
}

// pauses returns the pauses of the rules with each unit, which are at most a time. With a
// Retry-After, that is the pause, and the notices say only which limit it is.
func (x *answer) pauses(most time.Duration) (all [anyUnit + 1]time.Duration) {
	isSaid := false
	for _, n := range x.notices {
		if n.remaining == 0 || n.remaining == infinite && x.isRefusal {
			wait := x.retry
			if wait == unknown {
				wait = n.wait
			}
			all[n.unit] = max(all[n.unit], min(wait, most))
			isSaid = isSaid || all[n.unit] > 0
		}
	}
	if !isSaid {
		all[anyUnit] = max(0, min(x.retry, most))
	}
	return all
}

// limitOf returns the limit of a unit that a response says, or unlimited, and what is left of it.
// Of several it is the one with the shortest window. It supplies a token in most at the latest,
// and is not faster than unlimited.
func (x *answer) limitOf(unit Unit, most time.Duration) (limit tb.Limit, left float64) {
	limit, left = unlimited, infinite
	for _, n := range x.notices {
		tokens := int64(min(n.limit, tb.MaxCapacity, tokensIn(unlimited, n.window)))
		window := time.Duration(min(float64(n.window), float64(tokens)*float64(most)))
		isBetter := limit == unlimited || window < limit.Per
		if isBetter && window > 0 && n.limit < infinite && (n.unit == unit || n.unit == anyUnit) {
			limit, left = tb.Limit{Capacity: int(tokens), Tokens: tokens, Per: window}, n.remaining
		}
	}
	return limit, left
}

// hasLeft reports whether plainly all limits of a header have something left: no number begins as 0
// or a negative one may.
func hasLeft(h http.Header) bool {
	for i := range families {
		for _, line := range h[families[i].remaining] {
			before := byte(',')
			for _, c := range []byte(line) {
				isLow := '+' <= c && c <= '0' // such as + - . 0
				if c < ' ' || c > '~' || isLow && strings.IndexByte(`,= "`, before) >= 0 {
					return false
				}
				before = c
			}
		}
	}
	return true
}

func (x *answer) addFamily(f *family) {
	if f.reset == "" {
		x.add(nil, f.limit, "limit") // 100;w=60 in the drafts 03 to 07
		x.add(nil, f.remaining, "limit")
		return
	}
	n := newNotice(f.form)
	if x.add(n, f.reset+"-After", "reset"); n.wait == unknown { // Discord
		x.add(n, f.reset, "reset")
	}
	x.add(n, f.remaining, "remaining")
	x.add(n, f.limit, "limit")
	if n.wait == unknown && n.window == 0 {
		return
	}
	for _, m := range x.notices { // the policy of the draft 06, which has the window
		if m.wait == unknown && m.unit == n.unit && m.limit == n.limit {
			m.remaining, m.wait = min(m.remaining, n.remaining), n.wait
			return
		}
	}
	if n.window == 0 && x.header["Ratelimit-Policy"] == nil { // a guess: it may be longer
		if n.window = n.wait; n.unit != anyUnit {
			n.window = max(n.wait, time.Minute)
		}
	}
	x.notices = append(x.notices, n)
}

// add adds what a field says to a notice, or if that is nil, to those that its members name. A
// value without a key has the given one. If a field is repeated, or is a list, the value that slows
// down counts.
func (x *answer) add(n *notice, field, key string) {
	to := n
	for _, i := range items(x.header[field]) {
		if !i.isParameter {
			if to = n; n == nil {
				to = x.noticeOf(i.key, i.value != "")
			}
			if i.value == "" {
				i.key, i.value = key, i.key
			}
		}
		switch i.key {
		case "q", "limit":
			if q := number(i.value); q <= to.limit {
				to.limit = q
			} else if q < infinite { // nor does its window count: 10, 10;w=1, 1000;w=3600
				to = newNotice("")
			}
		case "r", "remaining":
			to.remaining = min(to.remaining, number(i.value))
		case "t", "reset":
			to.wait = max(to.wait, x.until(i.value, time.Second))
		case "milliseconds":
			to.wait = max(to.wait, x.until(i.value, time.Millisecond))
		case "w":
			to.window = seconds(number(i.value))
		case "qu":
			if to.unit = unitOf(i.value); to.unit == anyUnit { // such as bytes: no rule counts them
				to.limit = 0
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
	n := newNotice(name)
	x.notices = append(x.notices, n)
	return n
}

// item is a member of a list or a dictionary of structured fields (RFC 9651), or a parameter of the
// member before. The key of a member may have quotes, and may be a date, which has a comma.
type item struct {
	isParameter bool
	key, value  string
}

var syntax = regexp.MustCompile(
	`(^|[,;])\s*("(?:[^"\\]|\\.)*"|[A-Za-z]+, \d\d[ -][^",;=]*|[^",;=]*)` +
		`\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^",;]*))?`)

// items returns the items of the lines of a field. The first one is a member. A text that has
// another syntax has strange items.
func items(lines []string) (all []item) {
	if len(lines) == 0 {
		return nil
	}
	for _, m := range syntax.FindAllStringSubmatch(strings.Join(lines, ","), mostItems) {
		all = append(all, item{m[1] == ";", strings.TrimSpace(m[2]), strings.Trim(m[3], `" `)})
	}
	return all
}

// until returns the time from the response until what a text says, 0 to 100 years, or unknown. The
// text is a number, which is a time or an instant, a duration such as 6m0s, or a date.
func (x *answer) until(text string, unit time.Duration) time.Duration {
	s := number(text)
	if s < 1e9 {
		return seconds(s * unit.Seconds())
	}
	if s < infinite { // an instant since 1970: a time would be 31 years or more
		for range 3 { // from seconds to nanoseconds
			if s >= 1e11 {
				s /= 1000
			}
		}
		return seconds(s - x.sent)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return seconds(d.Seconds())
	}
	t, err := http.ParseTime(text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return unknown
	}
	return seconds(secondsOf(t) - x.sent)
}

// seconds returns a time of 0 to 100 years, or 0 for an infinite number.
func seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	if s == infinite {
		return 0
	}
	return time.Duration(min(max(s, 0), most) * 1e9).Round(time.Microsecond)
}

// secondsOf returns Unix seconds. A float64 has instants to less than a microsecond.
func secondsOf(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// number returns the decimal number of a text, or infinite. A negative one is 0.
func number(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if strings.ContainsAny(text, "xXnN") || err != nil && !math.IsInf(n, 0) {
		return infinite
	}
	return min(max(n, 0), math.MaxFloat64)
}
