package linearizable

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// A history is linearizable if there is an order of its calls in which the oracle, tb/mutex,
// returns every reply of the history, bit for bit. The order never puts a call before a call
// that had returned when it was made. For one exception see oracle.mayDiffer. Len and Stats
// are not compared.

type verb int

const (
	allowAt verb = iota
	allowCost
	peek
	reset
	reserve
	cancel
	settle
	setLimit
)

// request is a call and the reading of the clock that it brings.
type request struct {
	verb verb
	at   time.Duration // since span.Origin
	key  string
	n    int
	cost float64

	of    *request // of cancel and settle: the call that made the reservation
	limit tb.Limit // of setLimit

	yield bool // the goroutine yields after it has recorded the call and before it makes it

	overlapped bool // another call was under way at the same time
	inserting  bool // another call that was under way at the same time may have inserted the key
	evicting   bool // another call that was under way at the same time may have evicted the key
	changing   bool // another call that was under way at the same time was a SetLimit
	absent     *request
}

// mayDiffer reports whether a may be the reply to r although the oracle returns want. There are
// three cases, all of calls that add no key, because they do not wait for inserts:
//
//   - An insert under way is about to add the key of r, and the key is not in the table yet.
//   - An insert under way has evicted the key of r. The reply is that for an absent key, although
//     the other key is not in the table yet.
//   - A Peek of a new key in a full table sees the table as the last insert saw it. It may be
//     refused for less time, or not at all.
func (o *oracle) mayDiffer(r *request, want, a reply) bool {
	impossible := r.verb == allowAt && r.n > o.setup.limit.Capacity
	if !r.overlapped || a.err != nil || r.verb != peek && !impossible {
		return false
	}
	full := tb.Decision{RetryAfter: tb.Never, Remaining: o.setup.limit.Capacity}
	if !impossible {
		full = tb.Decision{Allowed: true, Remaining: o.setup.limit.Capacity - 1}
	}
	noRoom := r.verb == peek && !want.Allowed && o.isAbsent(r)
	switch {
	case a.Decision == full && (r.inserting || noRoom):
		return true
	case noRoom && !a.Allowed && a.Remaining == 0 && a.RetryAfter > 0 &&
		a.RetryAfter < want.RetryAfter:
		return true
	case !r.evicting:
		return false
	}
	if r.absent == nil {
		r.absent = &request{verb: r.verb, at: r.at, key: "absent", n: r.n, overlapped: true}
	}
	want, _ = o.then(r.absent)
	return a == want || o.mayDiffer(r.absent, want, a)
}

// isAbsent reports whether the key of r, which the oracle refuses, is not in the table. A key in
// the table would lack tokens.
func (o *oracle) isAbsent(r *request) bool {
	a, _ := o.then(r.impossible(&o.setup.limit))
	return a.Remaining == o.setup.limit.Capacity
}

// impossible returns a call on the key of r that is refused forever.
func (r *request) impossible(limit *tb.Limit) *request {
	return &request{verb: allowAt, at: r.at, key: r.key, n: limit.Capacity + 1}
}

func (r *request) String() string {
	return fmt.Sprintf("%s %q n=%d cost=%v at %v",
		[...]string{
			"AllowAt", "AllowN", "Peek", "Reset", "Reserve", "Cancel", "Settle", "SetLimit",
		}[r.verb], r.key, r.n, r.cost, r.at)
}

// reply is the result of a call as its caller sees it.
type reply struct {
	tb.Decision
	delay time.Duration // of a reservation
	err   error
}

// limiter has the methods that requests call.
type limiter interface {
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
	AllowN(ctx context.Context, key string, cost float64) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Reset(key string)
}

// sharedClock is a clock for many callers at once, each with its own reading. A caller sets its
// reading and holds the lock until the limiter reads the clock, which the limiter does once in
// each call with a valid cost. The rest of the call is not under the lock.
type sharedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *sharedClock) set(now time.Time) {
	c.mu.Lock()
	c.now = now
}

func (c *sharedClock) read() time.Time {
	defer c.mu.Unlock()
	return c.now
}

// on makes the call r on l, whose clock is c.
func (r *request) on(l limiter, c *sharedClock) (a reply) {
	ctx := context.Background()
	at := span.Origin.Add(r.at)
	switch r.verb {
	case allowAt:
		a.Decision, a.err = l.AllowAt(at, r.key, float64(r.n))
	case allowCost:
		if r.cost > 0 {
			c.set(at)
		}
		a.Decision, a.err = l.AllowN(ctx, r.key, r.cost)
	case peek:
		c.set(at)
		a.Decision, a.err = l.Peek(ctx, r.key)
	case reset:
		c.set(at)
		l.Reset(r.key)
	default:
		return r.onSession(l.(*session), c)
	}
	return a
}

// setup is a limiter's configuration.
type setup struct {
	limit    tb.Limit
	maxKeys  int
	overflow tb.Overflow
}

func (s *setup) options(c *sharedClock) []tb.Option {
	return []tb.Option{
		tb.WithClock(c.read), tb.WithMaxKeys(s.maxKeys), tb.WithOverflow(s.overflow),
	}
}

// oracle is a state of the oracle: the sequence of calls that led to it. Only granted calls and
// resets change the state, so the sequence has no other calls. States form a tree, and each
// state caches its replies and the states that follow it. Only one check may use it at a time.
type oracle struct {
	setup   *setup
	parent  *oracle
	last    *request
	replies map[*request]reply
	next    map[*request]*oracle
}

func newOracle(s *setup, parent *oracle, last *request) *oracle {
	return &oracle{s, parent, last, map[*request]reply{}, map[*request]*oracle{}}
}

// then returns the oracle's reply to r, and its state after r.
func (o *oracle) then(r *request) (reply, *oracle) {
	a, ok := o.replies[r]
	if !ok {
		c := new(sharedClock)
		a = r.on(o.limiter(c), c)
		o.replies[r] = a
	}
	if r.verb == peek || r.verb != reset && !a.Allowed {
		return a, o
	}
	next, ok := o.next[r]
	if !ok {
		next = newOracle(o.setup, o, r)
		o.next[r] = next
	}
	return a, next
}

// limiter returns a limiter in the state o, whose clock is c.
func (o *oracle) limiter(c *sharedClock) *mutex.TokenBucket {
	if o.parent == nil {
		l, err := mutex.New[string](o.setup.limit, o.setup.options(c)...)
		if err != nil {
			panic(err)
		}
		span.Start(l)
		return l
	}
	l := o.parent.limiter(c)
	o.last.on(l, c)
	return l
}

// oracleModel returns the oracle as a model for porcupine.
func oracleModel(s *setup) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return newOracle(s, nil, nil) },
		Step: func(state, in, out any) (bool, any) {
			r, a := in.(*request), out.(reply)
			o := state.(*oracle)
			want, next := o.then(r)
			return want == a || o.mayDiffer(r, want, a), next
		},
		DescribeOperation: func(in, out any) string {
			a := out.(reply)
			return fmt.Sprintf("%v: %+v %v %v", in, a.Decision, a.delay, a.err)
		},
	}
}

// linearizable reports whether a history is linearizable.
func linearizable(s *setup, history []porcupine.Operation) bool {
	return porcupine.CheckOperations(oracleModel(s), history)
}

// inOrderOfCall reports whether the order in which the calls were made explains the history, so
// that the history says nothing about concurrency.
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

// logHistory logs the calls of a history and their replies, in the order of the calls.
func logHistory(t *testing.T, s *setup, history []porcupine.Operation) {
	t.Helper()
	t.Logf("limit %+v, %d keys, %v", s.limit, s.maxKeys, s.overflow)
	for _, o := range byCall(history) {
		t.Logf("%3d to %3d, goroutine %d: %s", o.Call, o.Return, o.ClientId,
			oracleModel(s).DescribeOperation(o.Input, o.Output))
	}
}
