package replay

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/hash"
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
	requests  uint64
	clients   *sketch.Summary[habit]
	forwarded forwarded
}

func newHabits() habits {
	itself := func(h uint64) uint64 { return h }
	return habits{
		clients:   sketch.NewSummary[habit](maxTracked),
		forwarded: forwarded{clients: sketch.NewSample[uint64, struct{}](maxTracked, itself)},
	}
}

// forwarded has the clients that X-Forwarded-For names.
type forwarded struct {
	requests, with int // that were looked at, and the ones with the field
	clients        sketch.Sample[uint64, struct{}]
}

// add looks at X-Forwarded-For of a request.
func (f *forwarded) add(list []byte) {
	if f.requests++; len(list) == 0 {
		return
	}
	f.with++
	last := bytes.TrimSpace(list[bytes.LastIndexByte(list, ',')+1:])
	if h := hash.Mix(hash.Add(hash.Empty, last)); f.clients.Takes(h) {
		f.clients.Put(h, struct{}{})
	}
}

// isUsual reports whether most requests come through a proxy that writes the field.
func (f *forwarded) isUsual() bool { return 2*f.with > f.requests }

// habit is what a client is for, as far as the log shows it: whom a limit would hurt. path is a
// group of paths that is in the lead by some requests (R. Boyer, J. Moore, "MJRTY", 1981), and of
// is how many of the requests since then ask for it.
type habit struct {
	crawler, path      string
	lead, of, requests int
	agents             []uint64 // hashes of User-Agents, at most maxAgents
}

// From manyAgents different User-Agents on, a client may be several people behind one address.
const manyAgents, maxAgents = 5, 20

// add looks at a request of a key. Its X-Forwarded-For is of interest if the client is the peer.
func (h *habits) add(key []byte, rec *accesslog.Record, direct bool) {
	if h.requests++; h.requests > firstHabits && h.requests%everyHabit != 0 {
		return
	}
	if direct {
		h.forwarded.add(rec.Forwarded())
	}
	e, added := h.clients.See(key)
	e.Count++
	v, agent := &e.Value, rec.Agent()
	if added {
		*v = habit{agents: v.agents[:0]}
		for _, name := range crawlers {
			if bytes.Contains(agent, []byte(name)) {
				v.crawler = name
			}
		}
	}
	if sum := hash.Mix(hash.Add(hash.Empty, agent)); len(v.agents) < maxAgents &&
		!slices.Contains(v.agents, sum) {
		v.agents = append(v.agents, sum)
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

// areMany reports whether each of some clients has many User-Agents. The client is a part of a key.
func (h *habits) areMany(clients []string, part int) bool {
	many := make(map[string]bool)
	for e := range h.clients.All() {
		if len(e.Value.agents) >= manyAgents {
			many[compositekey.Parts(e.Key)[part]] = true
		}
	}
	return !slices.ContainsFunc(clients, func(client string) bool { return !many[client] })
}

// of returns what is known of a key: the name of a crawler, which any client can send, the paths
// that more than half of its requests ask for, and how many User-Agents it has, if they are many.
func (h *habits) of(key string) string {
	e := h.clients.Get(key)
	if e == nil {
		return ""
	}
	v, known := &e.Value, []string(nil)
	if v.crawler != "" {
		known = append(known, v.crawler)
	}
	if 2*v.of > v.requests {
		known = append(known, "mostly "+v.path)
	}
	if n := len(v.agents); n >= manyAgents {
		known = append(known, fmt.Sprintf("%s%d User-Agents: several people?", atLeast(n == maxAgents), n))
	}
	return strings.Join(known, "  ")
}
