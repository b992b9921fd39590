package interleaving

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/interleave"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// answered is what a caller sees of a call. It is comparable.
type answered struct {
	tb.Decision
	failed bool
}

func (a answered) String() string {
	switch {
	case a.failed:
		return "an error"
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
	Reset(key string)
	Stats() tb.Stats
}

// on makes the call on l, whose clock is now.
func (c ask) on(l target, now *time.Time) answered {
	var d tb.Decision
	var err error
	*now = instant(c.at)
	switch c.op {
	case take:
		d, err = l.AllowAt(*now, c.key, c.n)
	case one:
		d, err = l.Allow(context.Background(), c.key)
	case look:
		d, err = l.Peek(context.Background(), c.key)
	case wipe:
		l.Reset(c.key)
	}
	return answered{d, err != nil}
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
		a := ask{look, k, at, 0}.on(l, now)
		out = fmt.Appendf(out, "%s:%d,%d ", k, a.Remaining, a.RetryAfter)
	}
	for i := 0; i <= s.maxKeys && !s.oneBucket; i++ {
		st := l.Stats()
		out = fmt.Appendf(out, "%d+%d+%d-%v-%d ", st.Keys, st.EvictedFull, st.EvictedInDebt,
			st.Forgiven, st.RefusedNew)
		ask{take, newKeys[i], at, 10}.on(l, now)
	}
	return string(out)
}

var newKeys = [...]string{"v", "w", "x", "y", "z"}

// keys returns the keys of the scenario, in the order in which they appear.
func (s *scenario) keys() []string {
	var keys []string
	for _, calls := range append([][]ask{s.before}, s.threads...) {
		for _, c := range calls {
			if !slices.Contains(keys, c.key) {
				keys = append(keys, c.key)
			}
		}
	}
	return keys
}

// oracle knows what tb/mutex answers to the calls of a scenario, in every order.
type oracle struct {
	scenario scenario
	root     *order
	judged   map[string]bool // histories, and whether they are linearizable
	id       []byte          // of the history that is judged
}

// order is some of the calls in an order, and the orders that go on from there.
type order struct {
	threads []int // that make the calls
	last    answered
	next    map[int]*order
	after   string // the aftermath, if all calls are made
}

func newOracle(s scenario) *oracle {
	root := &order{next: make(map[int]*order)}
	return &oracle{scenario: s, root: root, judged: make(map[string]bool)}
}

// then returns the order in which thread makes the next call after o.
func (m *oracle) then(o *order, thread int) *order {
	if next, ok := o.next[thread]; ok {
		return next
	}
	next := &order{threads: append(o.threads[:len(o.threads):len(o.threads)], thread),
		next: make(map[int]*order)}
	o.next[thread] = next
	l, now := m.limiter()
	made := make([]int, len(m.scenario.threads))
	for _, t := range next.threads {
		next.last = m.scenario.threads[t][made[t]].on(l, now)
		made[t]++
	}
	for t := range made {
		if made[t] < len(m.scenario.threads[t]) {
			return next
		}
	}
	next.after = m.scenario.aftermath(l, now)
	return next
}

func (m *oracle) limiter() (target, *time.Time) {
	now := new(time.Time)
	s := &m.scenario
	l, err := mutex.New[string](s.rate(), s.options(now)...)
	if err != nil {
		panic(err)
	}
	for _, c := range s.before {
		c.on(l, now)
	}
	return l, now
}

// judge returns an error if the history is that of no order of the calls.
func (m *oracle) judge(history [][]interleave.Returned, after string) error {
	m.id = append(m.id[:0], after...)
	for _, calls := range history {
		for _, c := range calls {
			a := c.Result.(answered)
			m.id = binary.AppendVarint(m.id, int64(a.Remaining))
			m.id = binary.AppendVarint(m.id, int64(a.RetryAfter))
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
	history [][]interleave.Returned, after string, o *order, made []int,
) bool {
	done := true
	for t, calls := range history {
		if made[t] == len(calls) {
			continue
		}
		done = false
		c := calls[made[t]]
		if !follows(made, c.After) {
			continue
		}
		next := m.then(o, t)
		if next.last != c.Result {
			continue
		}
		made[t]++
		if m.search(history, after, next, made) {
			return true
		}
		made[t]--
	}
	return done && (o.after == after || m.scenario.unordered)
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
