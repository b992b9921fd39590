package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// client is a key of a log with its requests, and what the limit does to them.
type client struct {
	suggest.Client
	key     string
	peak    peak
	refused uint64 // requests
	lacking uint64 // what the client needs above the burst of a suggested limit
	habit   *habit // nil if no request was looked at
	contest *contest
	parts   *[maxPaths]*suggest.Client // of the requests to chosen paths; nil if there are none
}

// isHit reports whether the limit ever refuses the client.
func (c *client) isHit() bool { return c.refused > 0 || c.lacking > 0 }

// leastClients is how many clients of a log have counts at least, whatever bounds the limiter. They
// take about 25 MB.
const leastClients = 1 << 17

// clients are the clients of a log, at most bound of them.
type clients struct {
	byKey map[string]*client
	bound int
	more  bool // whether there are more
}

func newClients(bound int) clients { return clients{byKey: make(map[string]*client), bound: bound} }

// of returns the client with a key. Beyond the bound it is a new one that is in no count.
func (cs *clients) of(key []byte) *client {
	c := cs.byKey[string(key)] // does not allocate
	if c == nil {
		c = &client{key: string(key)}
		if len(cs.byKey) == cs.bound {
			cs.more = true
			return c
		}
		cs.byKey[c.key] = c
	}
	return c
}

// fill fills in whom a limit with a burst refuses, and returns how many clients.
func (cs *clients) fill(rep *Report, burst uint64, cost Cost) (refused uint64) {
	for _, c := range cs.byKey {
		if c.isHit() {
			refused++
		}
	}
	rep.Kinds = kindsOf(cs.byKey, burst, cost)
	top := slices.SortedFunc(maps.Values(cs.byKey), func(a, b *client) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(b.lacking, a.lacking),
			cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.key, b.key))
	})
	for _, c := range top[:min(len(top), topKeys)] {
		rep.Top = append(rep.Top, TopKey{
			Key: compositekey.Parts(c.key), Requests: c.Requests, Refused: c.refused,
			Peak: c.peak.most, Habit: c.habit.String(),
		})
	}
	return refused
}

// check returns the cost of a request in whole tokens, or an error if the cost is not whole or
// there are more clients than the bound. The name is what needs whole tokens, and looks at all
// clients.
func (cs *clients) check(p pending, name string) (cost uint64, err error) {
	switch {
	case p.cost != math.Trunc(p.cost):
		return 0, fmt.Errorf("a request costs %v tokens: %s needs whole tokens", p.cost, name)
	case cs.more:
		return 0, fmt.Errorf("the log has more than %s keys, and %s looks at all of them:"+
			" want a greater --max-keys", grouped(cs.bound), name)
	}
	return uint64(min(p.cost, tb.MaxCapacity+1)), nil
}
