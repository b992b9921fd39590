package linearizable

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/internal/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// A history is linearizable if its calls can be put in one order, which never puts a call
// before one that had returned when it was made, such that the oracle, asked in that
// order, gives every answer of the history, bit for bit. There is one exception: see
// past.unsure. What the oracle is not asked are Len and Stats.

type verb int

const (
	takeAt verb = iota
	takeCost
	look
	forget
)

// request is a call, with the reading of the clock that it brings.
type request struct {
	verb verb
	at   time.Duration // since the first reading of the clock
	key  string
	n    int
	cost float64

	yield bool // the caller is descheduled between being there and calling

	overlapped bool // another call was made before this one returned, and the other way around
	inserting  bool // and one such call may have inserted the key
}

// unsure reports whether a may be the answer to r where the oracle, in the state p, gives
// want. A call that adds no key waits for no insert: it may find that one key was evicted
// and the other is not there yet, so that its key is not in the table. And a look at a key
// that a full table has no room for may find the table as the insert before saw it, and be
// refused for less time, or not at all.
func (p *past) unsure(r *request, want, a reply) bool {
	impossible := r.verb == takeAt && r.n > p.setup.limit.Capacity
	if !r.overlapped || a.err != nil || r.verb != look && !impossible {
		return false
	}
	full := tb.Decision{RetryAfter: tb.Never, Remaining: p.setup.limit.Capacity}
	if !impossible {
		full = tb.Decision{Allowed: true, Remaining: p.setup.limit.Capacity - 1}
	}
	noRoom := r.verb == look && !want.Allowed && p.absent(r)
	if a.Decision == full {
		return r.inserting || noRoom
	}
	return noRoom && !a.Allowed && a.Remaining == 0 && a.RetryAfter > 0 &&
		a.RetryAfter < want.RetryAfter
}

// absent reports whether the key of r, which the oracle refuses, is not in the table. If it
// were, it would lack tokens.
func (p *past) absent(r *request) bool {
	a, _ := p.then(r.impossible(&p.setup.limit))
	return a.Remaining == p.setup.limit.Capacity
}

// impossible returns a call on the key of r that is refused for ever.
func (r *request) impossible(limit *tb.Limit) *request {
	return &request{verb: takeAt, at: r.at, key: r.key, n: limit.Capacity + 1}
}

func (r *request) String() string {
	return fmt.Sprintf("%s %q n=%d cost=%v at %v",
		[...]string{"AllowAt", "AllowCost", "Peek", "Reset"}[r.verb], r.key, r.n, r.cost, r.at)
}

// reply is all that the caller sees.
type reply struct {
	tb.Decision
	err error
}

// keyed is the limiter that is called, but for Len and Stats.
type keyed interface {
	AllowAt(t time.Time, key string, n int) (tb.Decision, error)
	AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Reset(key string)
}

// baton is a clock that many callers use at once, each with a reading of its own. Who
// sets the reading holds the lock until the limiter has read it, which it does once in
// each call with a valid cost; the rest of the call is not under the lock.
type baton struct {
	mu sync.Mutex
	at time.Time
}

func (b *baton) pass(at time.Time) {
	b.mu.Lock()
	b.at = at
}

func (b *baton) read() time.Time {
	defer b.mu.Unlock()
	return b.at
}

// on makes the call r on l, whose clock is b.
func (r *request) on(l keyed, b *baton) (a reply) {
	ctx := context.Background()
	at := span.Origin.Add(r.at)
	switch r.verb {
	case takeAt:
		a.Decision, a.err = l.AllowAt(at, r.key, r.n)
	case takeCost:
		if r.cost > 0 {
			b.pass(at)
		}
		a.Decision, a.err = l.AllowCost(ctx, r.key, r.cost)
	case look:
		b.pass(at)
		a.Decision, a.err = l.Peek(ctx, r.key)
	case forget:
		l.Reset(r.key)
	}
	return a
}

// setup is a limiter's configuration.
type setup struct {
	limit    tb.Limit
	maxKeys  int
	overflow tb.Overflow
}

func (s *setup) options(b *baton) []tb.Option {
	return []tb.Option{
		tb.WithClock(b.read), tb.WithMaxKeys(s.maxKeys), tb.WithOverflow(s.overflow),
	}
}

// past is a state of the oracle: what was asked of it until then, of which only calls
// that were granted, and resets, make a difference. States are built as a tree, in which
// one sequence of such calls is one state. A past is never changed but for what it
// remembers; one check uses it at a time.
type past struct {
	setup   *setup
	before  *past
	last    *request
	replies map[*request]reply
	after   map[*request]*past
}

func newPast(s *setup, before *past, last *request) *past {
	return &past{s, before, last, map[*request]reply{}, map[*request]*past{}}
}

// then returns the oracle's reply to r, and its state after that.
func (p *past) then(r *request) (reply, *past) {
	a, ok := p.replies[r]
	if !ok {
		b := new(baton)
		a = r.on(p.oracle(b), b)
		p.replies[r] = a
	}
	if r.verb == look || r.verb != forget && !a.Allowed {
		return a, p
	}
	next, ok := p.after[r]
	if !ok {
		next = newPast(p.setup, p, r)
		p.after[r] = next
	}
	return a, next
}

// oracle returns an oracle in the state p.
func (p *past) oracle(b *baton) *mutex.TokenBucket {
	if p.before == nil {
		l, err := mutex.New[string](p.setup.limit, p.setup.options(b)...)
		if err != nil {
			panic(err)
		}
		span.Start(l)
		return l
	}
	l := p.before.oracle(b)
	p.last.on(l, b)
	return l
}

// oracleModel is the oracle as the checker wants it.
func oracleModel(s *setup) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return newPast(s, nil, nil) },
		Step: func(state, in, out any) (bool, any) {
			r, a := in.(*request), out.(reply)
			p := state.(*past)
			want, next := p.then(r)
			return want == a || p.unsure(r, want, a), next
		},
		DescribeOperation: func(in, out any) string {
			a := out.(reply)
			return fmt.Sprintf("%v: %+v %v", in, a.Decision, a.err)
		},
	}
}

// linearizable says whether the history of a limiter is linearizable.
func linearizable(s *setup, history []porcupine.Operation) bool {
	return porcupine.CheckOperations(oracleModel(s), history)
}

// inOrderOfCall says whether a history can be explained by the order in which the calls
// were made, so that there was nothing to find out.
func inOrderOfCall(s *setup, history []porcupine.Operation) bool {
	m := oracleModel(s)
	state := m.Init()
	for _, o := range byCall(history) {
		ok, next := m.Step(state, o.Input, o.Output)
		if !ok {
			return false
		}
		state = next
	}
	return true
}

// report says what was called, when, and what came back, in the order of the calls.
func report(t *testing.T, s *setup, history []porcupine.Operation) {
	t.Helper()
	t.Logf("limit %+v, %d keys, %v", s.limit, s.maxKeys, s.overflow)
	for _, o := range byCall(history) {
		t.Logf("%3d to %3d, goroutine %d: %s", o.Call, o.Return, o.ClientId,
			oracleModel(s).DescribeOperation(o.Input, o.Output))
	}
}
