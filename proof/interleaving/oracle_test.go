package interleaving

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// call makes the call c on l.
func (p *client) call(l registry.Caller, c call) (a answer) {
	var err error
	*p.now = timeOf(c.at)
	switch c.op {
	case take:
		a.Decision, err = l.AllowAt(*p.now, c.key, float64(c.n))
	case takeOne:
		a.Decision, err = l.Allow(context.Background(), c.key)
	case peek:
		a.Decision, err = l.Peek(context.Background(), c.key)
	case takeAll:
		charges := c.charges(l)
		a.Allowed, err = l.TakeAll(*p.now, charges, a.each[:])
		for i, c := range charges {
			if w, ok := c.(waiter); ok {
				a.delays[i] = w.Delay()
			}
		}
	case reset:
		l.Reset(c.key)
	case reserve:
		var r tb.Reservation
		r, err = l.Reserve(context.Background(), c.key, float64(c.n))
		p.held[c.key] = r
		a.Decision, a.delays[0], a.receipt = r.Decision, r.Delay(), l.Receipt(r)
	case cancel:
		l.Cancel(c.key, p.held[c.key])
	case settle:
		err = l.Settle(c.key, p.held[c.key], float64(c.n))
	case setLimit:
		err = l.SetLimit(limits[c.n])
	case setTier:
		err = l.SetTier(c.tier(), limits[c.n])
	case hold:
		err = l.Hold(context.Background(), c.key, timeOf(c.at+float64(c.n)))
	case takeIn, checkIn, keepIn:
		var charge tb.Charge
		if charge, err = l.ChargeIn(c.tier(), c.keys()[0], float64(c.n)); err != nil {
			break
		}
		if c.op == keepIn {
			charge.(interface{ Keep(float64) }).Keep(4)
		}
		if c.op == checkIn {
			a.Decision, err = charge.Peek(*p.now)
		} else {
			a.Decision, err = charge.Take(*p.now)
		}
	}
	a.failed = err != nil
	return a
}

// aftermath makes calls that show the state at the end of a schedule: the tokens of each key,
// the counts of the table, and the order in which it evicts the keys.
func (s *scenario) aftermath(l registry.Caller, p *client) string {
	var at float64
	for _, calls := range append(s.threads(), s.before) {
		for _, c := range calls {
			at = max(at, c.at)
		}
	}
	var out []byte
	for _, k := range s.keys() {
		c := call{peek, k, at, 0}
		if s.overflow == tb.RefuseNew && !l.Has(k) { // see explains
			c = call{take, k, at, capacity + 1}
		}
		a := p.call(l, c)
		out = fmt.Appendf(out, "%s:%d,%d ", k, a.Remaining, a.RetryAfter)
		if level, _ := l.Level(context.Background(), k); s.overflow != tb.RefuseNew {
			out = fmt.Appendf(out, "%v,%d ", level.Tokens, level.Full)
		}
	}
	st := l.Stats()
	out = fmt.Appendf(out, "%d-%v-%v ", st.Reservations, st.Settled, st.Unpaid)
	for i := 0; i <= s.maxKeys && !s.oneBucket && !s.undone; i++ {
		st := l.Stats()
		out = fmt.Appendf(out, "%d+%d+%d-%v-%d ", st.Keys, st.EvictedFull, st.EvictedInDebt,
			st.Forgiven, st.RefusedNew)
		p.call(l, call{take, newKeys[i], at, 10})
	}
	return string(out)
}

var newKeys = []string{"v", "w", "x", "y", "z"}

// keys returns the keys of the scenario in the order in which they appear.
func (s *scenario) keys() []string {
	var keys []string
	for _, calls := range append([][]call{s.before}, s.threads()...) {
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

// oracle computes the answers of tb/mutex to the calls of a scenario, in every order.
type oracle struct {
	scenario scenario
	root     *sequence
	full     bool            // a TakeAll may find a full table
	judged   map[string]bool // whether a history, by its id, is linearizable
	id       []byte          // of the history that is judged
}

// sequence is a sequence of steps of the calls, and the sequences that continue it. A call is
// one step, unless it is a TakeAll or evicts a key.
type sequence struct {
	turns []turn
	phase []phase // of each thread
	last  answer
	next  map[turn]*sequence
	after string // the aftermath, if the sequence has all calls
}

func newOracle(s scenario) *oracle {
	root := &sequence{phase: make([]phase, len(s.threads())), next: make(map[turn]*sequence)}
	full := s.overflow == tb.RefuseNew && slices.ContainsFunc(slices.Concat(s.threads()...),
		func(c call) bool { return c.op == takeAll })
	return &oracle{scenario: s, root: root, full: full, judged: make(map[string]bool)}
}

// then returns the sequence s followed by t.
func (m *oracle) then(s *sequence, t turn) *sequence {
	if next, ok := s.next[t]; ok {
		return next
	}
	next := &sequence{
		turns: append(s.turns[:len(s.turns):len(s.turns)], t),
		phase: slices.Clone(s.phase),
		next:  make(map[turn]*sequence),
	}
	s.next[t] = next
	l, before := m.limiter()
	earlier := new(any)
	left := 0 // number of calls
	inserts := new(insertLock)
	threads := make([]*caller, len(m.scenario.threads()))
	for i, calls := range m.scenario.threads() {
		threads[i] = newCaller(l, calls, before, inserts, earlier)
		threads[i].shared = m.scenario.shared
		defer threads[i].stop()
		left += len(calls)
	}
	for _, t := range next.turns {
		next.last, next.phase[t.thread] = threads[t.thread].step(t.other)
		if next.phase[t.thread] == outside {
			left--
		}
	}
	if left == 0 {
		next.after = m.scenario.aftermath(reference{TokenBucket: l}, before)
	}
	return next
}

// limiter returns a limiter on which the calls before the scenario's threads are made, and its
// client.
func (m *oracle) limiter() (*mutex.TokenBucket, *client) {
	p := newClient()
	s := &m.scenario
	opts := s.options(func() time.Time { return *p.now })
	l, err := mutex.New[string](limits[0], opts...)
	if s.tiers != nil {
		l, err = mutex.NewTiered[string](s.tierLimits(), opts...)
	}
	if err != nil {
		panic(err)
	}
	for _, c := range s.before {
		p.call(reference{TokenBucket: l}, c)
	}
	return l, p
}

// judge returns an error if no sequence of the calls has the history and the aftermath.
func (m *oracle) judge(history [][]modelcheck.Returned, after string) error {
	m.id = append(m.id[:0], after...)
	for _, calls := range history {
		for _, c := range calls {
			a := c.Result.(answer)
			for _, d := range append(a.each[:], a.Decision) {
				m.id = binary.AppendVarint(m.id, int64(d.Remaining))
				m.id = binary.AppendVarint(m.id, int64(d.RetryAfter))
			}
			for _, d := range a.delays {
				m.id = binary.AppendVarint(m.id, int64(d))
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
	return errors.New("no order of the calls explains their answers and the aftermath " + after)
}

// search reports whether a continuation of s has the history and the aftermath. In s, each
// thread has made the first made[thread] calls.
func (m *oracle) search(
	history [][]modelcheck.Returned, after string, s *sequence, made []int,
) bool {
	done := true
	for t, calls := range history {
		if made[t] == len(calls) {
			continue
		}
		done = false
		c := calls[made[t]]
		if s.phase[t] == outside && !follows(made, c.After) {
			continue
		}
		for _, next := range m.continuations(s, t, history, made) {
			returned := 0
			switch next.phase[t] {
			case blocked:
				continue
			case outside:
				if !next.last.explains(c.Result.(answer)) {
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
	return done && s.after == after
}

// follows reports whether all calls that returned before a call are made: the first after[t]
// calls of each thread t.
func follows(made, after []int) bool {
	for t, n := range after {
		if made[t] < n {
			return false
		}
	}
	return true
}
