package replay

import (
	"bytes"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
)

// Habit says what a client is for, as far as the log shows it: whom a limit would hurt.
type Habit struct {
	// Crawler is the name of a known crawler or monitor in the User-Agent of the client. Any client
	// can send it.
	Crawler string `json:"crawler,omitempty"`
	// Path is a path, or if it ends with a slash and is not "/" all paths below it, that more than
	// half of the requests of the client ask for.
	Path string `json:"path,omitempty"`
}

// crawlers are words in the User-Agent of well-known crawlers and monitors
// (https://github.com/monperrus/crawler-user-agents).
var crawlers = []string{
	"Googlebot", "AdsBot-Google", "bingbot", "Applebot", "DuckDuckBot", "YandexBot", "Baiduspider",
	"GPTBot", "OAI-SearchBot", "ClaudeBot", "CCBot", "Amazonbot", "facebookexternalhit", "AhrefsBot",
	"SemrushBot", "UptimeRobot",
}

// crawlerIn returns the name of the crawler in a User-Agent, or nothing.
func crawlerIn(agent []byte) string {
	i := slices.IndexFunc(crawlers, func(name string) bool {
		return bytes.Contains(agent, []byte(name))
	})
	if i < 0 {
		return ""
	}
	return crawlers[i]
}

// What habits look at: the first requests of a log and one in everyHabit of the others, and the
// User-Agent in the first ones of a client.
const (
	firstHabits = 1 << 12
	everyHabit  = 31 // a prime number: the requests of pages come in groups
	firstAgents = 2
)

// habits are the habits of the clients that send the most requests, at most maxTracked of them. One
// takes about 200 bytes, and the texts of its paths.
type habits struct {
	hasPath  bool // whether a key has the path
	requests uint64
	clients  *sketch.Summary[habit]
}

// habit counts the groups of paths that a client asks for, in a few counters (J. Misra, D. Gries,
// "Finding Repeated Elements", 1982). A count is too low by at most a fifth of the requests.
type habit struct {
	crawler  string
	requests int
	paths    [4]struct {
		group string
		n     int
	}
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
	if v.requests++; v.requests <= firstAgents && v.crawler == "" {
		v.crawler = crawlerIn(rec.Agent())
	}
	if !h.hasPath {
		v.count(groupOf(rec.Path))
	}
}

// count counts a request for a group of paths.
func (v *habit) count(group []byte) {
	free := -1
	for i, p := range v.paths {
		switch {
		case p.n == 0:
			free = i
		case p.group == string(group):
			v.paths[i].n++
			return
		}
	}
	if free >= 0 {
		v.paths[free].group, v.paths[free].n = string(group), 1
		return
	}
	for i := range v.paths {
		v.paths[i].n--
	}
}

// of returns the habit of a key as far as it is known.
func (h *habits) of(key string) (known Habit) {
	e := h.clients.Get(key)
	if e == nil {
		return known
	}
	known.Crawler = e.Value.crawler
	for _, p := range e.Value.paths {
		if 2*p.n > e.Value.requests {
			known.Path = p.group
		}
	}
	return known
}

// clientText returns a key on one line, with what is known of its client.
func clientText(key Key, h Habit) string {
	text := keyText(key)
	if h != (Habit{}) {
		text += "  " + h.habitText()
	}
	return text
}

// habitText returns what is known of a client, on one line.
func (h Habit) habitText() string {
	switch {
	case h.Path == "":
		return h.Crawler
	case h.Crawler == "":
		return "mostly " + h.Path
	}
	return h.Crawler + "  mostly " + h.Path
}
