package interleaving

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// answered is what a caller sees of a call. It is comparable.
type answered struct {
	tb.Decision
	failed bool
	each   [3]tb.Decision // of TakeAll, whose own has no more than Allowed

	// mild has a bit for each decision that is the refusal of a new key by a full table,
	// and was not to take anything. Only the reference sets it.
	mild uint8
}

// own is the bit of the decision itself.
const own = len(answered{}.each)

// explains says whether a caller may be answered got if the reference answers a. They are
// the same, except that one who only looks at a table that is full is answered by what the
// last insert saw of it. That may be an earlier end of the refusal, or none.
func (a answered) explains(got answered) bool {
	for i := range a.each {
		a.each[i] = milder(a.each[i], got.each[i], a.mild>>i&1 == 1)
	}
	if a.mild>>own&1 == 1 && got.Decision == (tb.Decision{Allowed: true, Remaining: capacity - 1}) {
		a.Decision = got.Decision
	}
	a.Decision = milder(a.Decision, got.Decision, a.mild>>own&1 == 1)
	a.mild = 0
	return a == got
}

// milder returns got if it may be milder than d, and ends no later; or else d.
func milder(d, got tb.Decision, mild bool) tb.Decision {
	if mild && !got.Allowed && got.RetryAfter > 0 && got.RetryAfter < d.RetryAfter {
		d.RetryAfter = got.RetryAfter
	}
	return d
}

func (a answered) String() string {
	switch {
	case a.failed:
		return "an error"
	case a.each != [3]tb.Decision{}:
		return fmt.Sprintf("%t: %+v", a.Allowed, a.each)
	case a.Allowed:
		return fmt.Sprintf("granted, %d left", a.Remaining)
	}
	return fmt.Sprintf("refused, %d left, retry after %v", a.Remaining, a.RetryAfter)
}

// target is what calls are made on.
type target interface {
	Allow(ctx context.Context, key string) (tb.Decision, error)
	AllowAt(t time.Time, key string, n int) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Charge(key string, cost float64) (tb.Charge, error)
	TakeAll(t time.Time, charges []tb.Charge, decisions []tb.Decision) (bool, error)
	Reset(key string)
	Stats() tb.Stats
	Has(key string) bool
}

// on makes the call on l, whose clock is now.
func (c ask) on(l target, now *time.Time) answered {
	var d tb.Decision
	var each [3]tb.Decision
	var err error
	*now = instant(c.at)
	switch c.op {
	case take:
		d, err = l.AllowAt(*now, c.key, c.n)
	case one:
		d, err = l.Allow(context.Background(), c.key)
	case look:
		d, err = l.Peek(context.Background(), c.key)
	case all:
		d.Allowed, err = l.TakeAll(*now, c.charges(l), each[:])
	case wipe:
		l.Reset(c.key)
	}
	return answered{Decision: d, failed: err != nil, each: each}
}

// aftermath makes calls that show the state that the schedule has left behind: what each
// key has, what the table has counted, and in which order the keys leave it.
func (s *scenario) aftermath(l target, now *time.Time) string {
	var at float64
	for _, calls := range append(s.threads, s.before) {
		for _, c := range calls {
			at = max(at, c.at)
		}
	}
	var out []byte
	for _, k := range s.keys() {
		c := ask{look, k, at, 0}
		if s.overflow == tb.RefuseNew && !l.Has(k) { // see explains
			c = ask{take, k, at, capacity + 1}
		}
		a := c.on(l, now)
		out = fmt.Appendf(out, "%s:%d,%d ", k, a.Remaining, a.RetryAfter)
	}
	for i := 0; i <= s.maxKeys && !s.oneBucket && !s.undone; i++ {
		st := l.Stats()
		out = fmt.Appendf(out, "%d+%d+%d-%v-%d ", st.Keys, st.EvictedFull, st.EvictedInDebt,
			st.Forgiven, st.RefusedNew)
		ask{take, newKeys[i], at, 10}.on(l, now)
	}
	return string(out)
}

var newKeys = []string{"v", "w", "x", "y", "z"}

// keys returns the keys of the scenario, in the order in which they appear.
func (s *scenario) keys() []string {
	var keys []string
	for _, calls := range append([][]ask{s.before}, s.threads...) {
		for _, c := range calls {
			for _, k := range c.keys() {
				if !slices.Contains(keys, k) {
					keys = append(keys, k)
				}
			}
		}
	}
	return keys
}

// oracle knows what tb/mutex answers to the calls of a scenario, in every order.
type oracle struct {
	scenario scenario
	root     *order
	full     bool            // a TakeAll may find the table to be full
	judged   map[string]bool // histories, and whether they are linearizable
	id       []byte          // of the history that is judged
}

// order is some of the steps of the calls in an order, and the orders that go on from
// there. All calls are a single step, but those on several buckets, and those that evict.
type order struct {
	turns []turn
	at    []place // where each thread is
	last  answered
	next  map[turn]*order
	after string // the aftermath, if all calls are made
}

// turn is a step of a thread. Some steps have another outcome: what is to be undone is lost,
// as the bucket has moved; or a new key is not found to be refused, although it is.
type turn struct {
	thread int
	other  bool
}

func newOracle(s scenario) *oracle {
	root := &order{at: make([]place, len(s.threads)), next: make(map[turn]*order)}
	full := s.overflow == tb.RefuseNew && slices.ContainsFunc(slices.Concat(s.threads...),
		func(c ask) bool { return c.op == all })
	return &oracle{scenario: s, root: root, full: full, judged: make(map[string]bool)}
}

// steps returns the orders in which thread makes the next step after o.
func (m *oracle) steps(o *order, thread int) []*order {
	next := []*order{m.then(o, turn{thread, false})}
	if m.scenario.moves && o.at[thread] == undoing || m.full {
		next = append(next, m.then(o, turn{thread, true}))
	}
	return next
}

func (m *oracle) then(o *order, t turn) *order {
	if next, ok := o.next[t]; ok {
		return next
	}
	next := &order{
		turns: append(o.turns[:len(o.turns):len(o.turns)], t),
		at:    slices.Clone(o.at),
		next:  make(map[turn]*order),
	}
	o.next[t] = next
	l, now := m.limiter()
	left := 0 // calls
	table := new(held)
	threads := make([]*caller, len(m.scenario.threads))
	for i, asks := range m.scenario.threads {
		threads[i] = newCaller(l, asks, now, table)
		defer threads[i].stop()
		left += len(asks)
	}
	for _, t := range next.turns {
		next.last, next.at[t.thread] = threads[t.thread].step(t.other)
		if next.at[t.thread] == outside {
			left--
		}
	}
	if left == 0 {
		next.after = m.scenario.aftermath(reference{TokenBucket: l}, now)
	}
	return next
}

func (m *oracle) limiter() (*mutex.TokenBucket, *time.Time) {
	now := new(time.Time)
	s := &m.scenario
	l, err := mutex.New[string](s.rate(), s.options(now)...)
	if err != nil {
		panic(err)
	}
	for _, c := range s.before {
		c.on(reference{TokenBucket: l}, now)
	}
	return l, now
}

// judge returns an error if the history is that of no order of the calls.
func (m *oracle) judge(history [][]modelcheck.Returned, after string) error {
	m.id = append(m.id[:0], after...)
	for _, calls := range history {
		for _, c := range calls {
			a := c.Result.(answered)
			for _, d := range append(a.each[:], a.Decision) {
				m.id = binary.AppendVarint(m.id, int64(d.Remaining))
				m.id = binary.AppendVarint(m.id, int64(d.RetryAfter))
			}
			if a.Allowed {
				m.id = append(m.id, 1)
			}
			for _, n := range c.After {
				m.id = append(m.id, byte(n))
			}
		}
	}
	ok, known := m.judged[string(m.id)]
	if !known {
		ok = m.search(history, after, m.root, make([]int, len(history)))
		m.judged[string(m.id)] = ok
	}
	if ok {
		return nil
	}
	return errors.New("no order of the calls explains what they returned, and then " + after)
}

// search looks for an order that goes on from o, where made calls of each thread are made.
func (m *oracle) search(
	history [][]modelcheck.Returned, after string, o *order, made []int,
) bool {
	done := true
	for t, calls := range history {
		if made[t] == len(calls) {
			continue
		}
		done = false
		c := calls[made[t]]
		if o.at[t] == outside && !follows(made, c.After) {
			continue
		}
		for _, next := range m.steps(o, t) {
			returned := 0
			switch next.at[t] {
			case blocked:
				continue
			case outside:
				if !next.last.explains(c.Result.(answered)) {
					continue
				}
				returned = 1
			}
			made[t] += returned
			if m.search(history, after, next, made) {
				return true
			}
			made[t] -= returned
		}
	}
	return done && o.after == after
}

// follows says whether all calls that returned before another are made.
func follows(made, after []int) bool {
	for t, n := range after {
		if made[t] < n {
			return false
		}
	}
	return true
}
