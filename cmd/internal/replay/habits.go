package replay

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// crawlers are words in the User-Agent of well-known crawlers.
var crawlers = []string{"Googlebot", "bingbot", "Applebot", "YandexBot", "GPTBot", "ClaudeBot"}

// The requests that are looked at for more than their key are the first ones of a log, and one in
// everySample of the others.
const (
	firstSample = 1 << 12
	everySample = 31 // a prime number: the requests of pages come in groups
)

// habit is what a client is for, as far as a sample of its requests shows it: whom a limit would
// hurt. path is a group of paths that is in the lead by some requests (R. Boyer, J. Moore, "MJRTY",
// 1981), and of is how many of the requests since then ask for it.
type habit struct {
	crawler, path      string
	lead, of, requests int
	agents             []uint64 // hashes of User-Agents, at most maxAgents
}

// From manyAgents different User-Agents on, a client may be several people behind one address.
const manyAgents, maxAgents = 5, 20

func newHabit(agent []byte) *habit {
	h := new(habit)
	for _, name := range crawlers {
		if bytes.Contains(agent, []byte(name)) {
			h.crawler = name
		}
	}
	return h
}

func (h *habit) add(rec *accesslog.Record) {
	h.requests++
	if sum := hash.Mix(hash.Add(hash.Empty, rec.Agent)); len(h.agents) < maxAgents &&
		!slices.Contains(h.agents, sum) {
		h.agents = append(h.agents, sum)
	}
	switch group := groupOf(rec.Path); {
	case group == "":
	case h.path == group:
		h.lead++
		h.of++
	case h.lead > 0:
		h.lead--
	default:
		h.path, h.lead, h.of = strings.Clone(group), 1, 1
	}
}

func (h *habit) isMany() bool { return h != nil && len(h.agents) >= manyAgents }

// String returns the name of a crawler, which any client can send, the paths that more than half of
// the requests ask for, and how many User-Agents the client has, if they are many.
func (h *habit) String() string {
	if h == nil {
		return ""
	}
	var known []string
	if h.crawler != "" {
		known = append(known, h.crawler)
	}
	if 2*h.of > h.requests {
		known = append(known, "mostly "+h.path)
	}
	if n := len(h.agents); h.isMany() {
		text := fmt.Sprintf("%d User-Agents: several people?", n)
		if n == maxAgents {
			text = "≥ " + text
		}
		known = append(known, text)
	}
	return strings.Join(known, "  ")
}
