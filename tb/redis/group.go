package redis

import (
	"context"
	"encoding/binary"
	"math"
	"strings"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

// group is charges that one script takes: all, or none. Their names differ, and they are on one
// server. The first charge's limiter makes the trips.
type group []*charge

// admits reports whether c can be a part of the group.
func (g group) admits(c *charge) bool {
	l, first := c.limiter, g[0].limiter
	if l.client != first.client || (l.clock == nil) != (first.clock == nil) {
		return false
	}
	if l.client.Mode() == rueidis.ClientModeCluster && tagOf(c.name) != tagOf(g[0].name) {
		return false
	}
	for _, other := range g {
		if other.name == c.name {
			return false
		}
	}
	return true
}

// tagOf returns what decides the slot of a name. No prefix has a brace.
func tagOf(name string) string {
	_, tag, _ := strings.Cut(name, "{")
	if tag, _, _ = strings.Cut(tag, "}"); tag == "" {
		return name
	}
	return tag
}

// take takes all charges, or none. If a charge refuses, the others have the decisions that they
// would have returned alone.
func (g group) take(ctx context.Context) ([]tb.Decision, error) {
	if len(g) == 1 {
		d, err := g[0].take(ctx)
		return []tb.Decision{d}, err
	}
	decisions, err := g.run(ctx)
	if err != nil {
		return g.degrade(ctx, err)
	}
	all := true
	for _, d := range decisions {
		all = all && d.Allowed
	}
	for i, c := range g {
		c.from, c.failure = nil, nil
		if c.taken = all; all {
			c.state.deficit += c.units
			c.limiter.warm(ctx, c.key, c.units)
		}
		c.limiter.counts.decided(decisions[i].Allowed)
	}
	return decisions, nil
}

// degrade decides the charges by the failure policies of their limiters, if err is why the server
// did not. A local share that has granted when another one refuses does not get its tokens back.
func (g group) degrade(ctx context.Context, err error) ([]tb.Decision, error) {
	decisions := make([]tb.Decision, len(g))
	for i, c := range g {
		c.taken, c.asked = false, false
		o, err := c.limiter.degrade(ctx, c.key, c.units, err)
		if err != nil {
			return decisions, err
		}
		decisions[i], c.failure = o.Decision, o.Failure
	}
	return decisions, nil
}

// run runs the script, and returns the decisions on the charges.
func (g group) run(ctx context.Context) ([]tb.Decision, error) {
	l := g[0].limiter
	decisions, states := make([]tb.Decision, len(g)), make([]state, len(g))
	argument := func(deadline float64) []byte {
		b := binary.BigEndian.AppendUint64(nil, math.Float64bits(deadline))
		for _, c := range g {
			b = append(b, c.limiter.layout.header...)
			b = binary.BigEndian.AppendUint32(b, uint32(c.units))
		}
		return b
	}
	for _, c := range g {
		if c.limiter.closed.Load() {
			return decisions, ErrClosed
		}
	}
	err := l.guard(g[0].key, func() error {
		return l.send(ctx, func(deadline int64) error {
			return l.runUntil(&l.node(g[0].key).offset, deadline, g.layout().takeAll, g.names(), argument,
				func(reply string) (now uint64, ok bool) { return parseStates(reply, states) })
		})
	})
	if err != nil {
		return decisions, l.counts.failed(err)
	}
	for i, c := range g {
		decisions[i] = c.decide(states[i])
	}
	return decisions, nil
}

// parseStates reads a reply of takeall.lua, and reports whether it has the right form.
func parseStates(reply string, states []state) (now uint64, ok bool) {
	b := []byte(reply)
	if len(b) != 7+11*len(states) {
		return 0, false
	}
	now, b = uint56(b), b[7:]
	for i := range states {
		states[i] = state{uint56(b), uint64(binary.BigEndian.Uint32(b[7:])), now}
		b = b[11:]
	}
	return now, true
}

// undo gives back what the last take has taken. It waits for the server as long as a call does.
func (g group) undo() {
	var taken group
	var argument []byte
	for _, c := range g {
		switch {
		case c.taken && c.from != nil:
			c.from.left.Add(c.units)
		case c.taken:
			taken = append(taken, c)
			argument = c.limiter.layout.appendGiveBack(argument, c.units, c.state.time)
		}
		c.taken = false
	}
	if taken == nil {
		return
	}
	l := g[0].limiter
	err := l.send(context.Background(), func(int64) error {
		var err error
		send := func() {
			_, err = l.run(g.layout().giveBack, taken.names(), rueidis.BinaryString(argument))
		}
		for _, c := range taken { // no limiter may refuse by what it knew before
			next := send
			send = func() { c.limiter.denials.reset(next, c.key) }
		}
		send()
		return err
	})
	l.counts.failed(err) //nolint:errcheck // Cancel returns none
}

func (g group) names() []string {
	names := make([]string, len(g))
	for i, c := range g {
		names[i] = c.name
	}
	return names
}

// layout returns the layout with the scripts that are exact for all charges.
func (g group) layout() *layout {
	for _, c := range g {
		if !c.limiter.layout.isNarrow() {
			return &c.limiter.layout
		}
	}
	return &g[0].limiter.layout
}
