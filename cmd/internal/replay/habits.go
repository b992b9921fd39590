package replay

import (
	"bytes"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
)

// Habit says what a client is for, as far as the log shows it: whom a limit would hurt.
type Habit struct {
	// Crawler is the name of a known crawler in the User-Agent of the client. Any client can send it.
	Crawler string `json:"crawler,omitempty"`
	// Path is a path, or if it ends with a slash and is not "/" all paths below it, that more than
	// half of the requests of the client ask for.
	Path string `json:"path,omitempty"`
}

// crawlers are words in the User-Agent of well-known crawlers.
var crawlers = []string{"Googlebot", "bingbot", "Applebot", "YandexBot", "GPTBot", "ClaudeBot"}

// habits look at the first requests of a log and at one in everyHabit of the others.
const (
	firstHabits = 1 << 12
	everyHabit  = 31 // a prime number: the requests of pages come in groups
)

// habits are the habits of the clients that send the most requests, at most maxTracked of them.
type habits struct {
	hasPath  bool // whether a key has the path
	requests uint64
	clients  *sketch.Summary[habit]
}

// habit has a group of paths that is in the lead by some requests (R. Boyer, J. Moore, "MJRTY",
// 1981), and how many of the requests since then ask for it.
type habit struct {
	Habit
	lead, of, requests int
}

// add looks at a request of a key.
func (h *habits) add(key []byte, rec *accesslog.Record) {
	if h.requests++; h.requests > firstHabits && h.requests%everyHabit != 0 {
		return
	}
	e, added := h.clients.See(key)
	if added {
		e.Value = habit{}
	}
	e.Count++
	v := &e.Value
	if v.requests++; v.requests == 1 {
		agent := rec.Agent()
		i := slices.IndexFunc(crawlers, func(name string) bool {
			return bytes.Contains(agent, []byte(name))
		})
		if i >= 0 {
			v.Crawler = crawlers[i]
		}
	}
	if group := groupOf(rec.Path); len(group) > 0 && !h.hasPath {
		v.count(group)
	}
}

// count counts a request for a group of paths.
func (v *habit) count(group []byte) {
	switch {
	case v.Path == string(group):
		v.lead++
		v.of++
	case v.lead > 0:
		v.lead--
	default:
		v.Path, v.lead, v.of = string(group), 1, 1
	}
}

// of returns the habit of a key as far as it is known.
func (h *habits) of(key string) (known Habit) {
	e := h.clients.Get(key)
	if e == nil {
		return known
	}
	if known = e.Value.Habit; 2*e.Value.of <= e.Value.requests {
		known.Path = ""
	}
	return known
}

// text returns what is known of a client, on one line.
func (h Habit) text() string {
	switch {
	case h.Path == "":
		return h.Crawler
	case h.Crawler == "":
		return "mostly " + h.Path
	}
	return h.Crawler + "  mostly " + h.Path
}

// clientText returns a key on one line, with what is known of its client.
func clientText(key Key, h Habit) string {
	if h == (Habit{}) {
		return keyText(key)
	}
	return keyText(key) + "  " + h.text()
}
