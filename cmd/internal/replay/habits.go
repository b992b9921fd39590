package replay

import (
	"bytes"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
)

// crawlers are words in the User-Agent of well-known crawlers.
var crawlers = []string{"Googlebot", "bingbot", "Applebot", "YandexBot", "GPTBot", "ClaudeBot"}

// habits look at the first requests of a log and at one in everyHabit of the others.
const (
	firstHabits = 1 << 12
	everyHabit  = 31 // a prime number: the requests of pages come in groups
)

// habits are the habits of the clients that send the most requests, at most maxTracked of them.
type habits struct {
	requests uint64
	clients  *sketch.Summary[habit]
}

// habit is what a client is for, as far as the log shows it: whom a limit would hurt. path is a
// group of paths that is in the lead by some requests (R. Boyer, J. Moore, "MJRTY", 1981), and of
// is how many of the requests since then ask for it.
type habit struct {
	crawler, path      string
	lead, of, requests int
}

// add looks at a request of a key.
func (h *habits) add(key []byte, rec *accesslog.Record) {
	if h.requests++; h.requests > firstHabits && h.requests%everyHabit != 0 {
		return
	}
	e, added := h.clients.See(key)
	e.Count++
	v := &e.Value
	if added {
		*v = habit{}
		for _, name := range crawlers {
			if bytes.Contains(rec.Agent(), []byte(name)) {
				v.crawler = name
			}
		}
	}
	v.requests++
	switch group := groupOf(rec.Path); {
	case len(group) == 0:
	case v.path == string(group):
		v.lead++
		v.of++
	case v.lead > 0:
		v.lead--
	default:
		v.path, v.lead, v.of = string(group), 1, 1
	}
}

// of returns what is known of a key: the name of a crawler, which any client can send, and the
// paths that more than half of its requests ask for.
func (h *habits) of(key string) string {
	e := h.clients.Get(key)
	switch {
	case e == nil:
		return ""
	case 2*e.Value.of <= e.Value.requests:
		return e.Value.crawler
	}
	return strings.TrimSpace(e.Value.crawler + "  mostly " + e.Value.path)
}
