package fuzz

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// limiter has the methods that both implementations have.
type limiter interface {
	tb.Limiter
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Level(ctx context.Context, key string) (tb.Level, error)
	Charge(key string, cost float64) (charge, error)
	ChargeIn(tier int, key string, cost float64) (charge, error)
	Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error)
	Wait(ctx context.Context, key string, cost float64) error
	SetLimit(limit tb.Limit) error
	SetTier(tier int, limit tb.Limit) error
	Limit() tb.Limit
	Hold(ctx context.Context, key string, until time.Time) error
	Reset(key string)
	Len() int
	Stats() tb.Stats
	Snapshot() iter.Seq2[string, tb.State]
	Restore(states iter.Seq2[string, tb.State]) error
}

// charge has the methods that the charges of both implementations have.
type charge interface {
	tb.Charge
	MayWait(within time.Duration)
	Keep(tokens float64)
	HoldOnRefusal(d time.Duration)
	Delay() time.Duration
	Level(t time.Time) (tb.Level, error)
	Settle(actual float64) error
	Enter(t time.Time)
}

// casLimiter and mutexLimiter are the implementations as limiters.
type casLimiter struct{ *cas.TokenBucket }

func (l casLimiter) Charge(key string, cost float64) (charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

func (l casLimiter) ChargeIn(tier int, key string, cost float64) (charge, error) {
	c, err := l.TokenBucket.ChargeIn(tier, key, cost)
	return &c, err
}

type mutexLimiter struct{ *mutex.TokenBucket }

func (l mutexLimiter) Charge(key string, cost float64) (charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

func (l mutexLimiter) ChargeIn(tier int, key string, cost float64) (charge, error) {
	c, err := l.TokenBucket.ChargeIn(tier, key, cost)
	return &c, err
}

// program is a limiter's configuration and a schedule of calls on it.
type program struct {
	limit    tb.Limit
	maxKeys  int
	overflow tb.Overflow
	calls    []call
}

type op int

const (
	allowN op = iota
	allowCost
	allowAt
	peek
	takeAll
	reset
	reserve
	wait
	cancel
	settle
	setLimit
	retake
	deepen
	restart
	hold
	keep
)

var opNames = [...]string{
	"allowN", "allowCost", "allowAt", "peek", "takeAll", "reset",
	"reserve", "wait", "cancel", "settle", "setLimit", "retake", "deepen", "restart",
	"hold", "keep",
}

// call is a call that is made after the clock has moved by step, which may be negative.
//
//   - allowAt gets the reading before the step.
//   - takeAll takes from the two keys key and other, which may be the same. Both charges may wait
//     for the time within, or if refusal is positive, both hold their keys for it if they refuse.
//   - wait has the deadline within, or if held is odd, a context that ends in the sleep, when the
//     clock has moved by within.
//   - cancel and settle end the grant that was the last but held. settle has the actual cost.
//   - retake takes the charge again that was made last but held.
//   - deepen takes whole capacities until the bucket is in the deepest debt, or 300 times.
//   - restart puts a new limiter in the place of the old one, and restores its buckets after the
//     time within. The new limiter begins with the limit of the call, if it has one, and then gets
//     the limit of the old one.
//   - hold holds the key for the time within, which may be negative.
//   - keep takes a charge that keeps tokens, and whose refusal holds the key for the time refusal.
type call struct {
	step    time.Duration
	op      op
	key     string
	n       int
	cost    float64
	other   string
	within  time.Duration
	held    int
	limit   tb.Limit
	keep    float64
	refusal time.Duration
}

// String returns the call as a literal, without the fields that are zero.
func (c call) String() string {
	var b strings.Builder
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch {
		case name == "op":
			b.WriteString(", op: " + opNames[c.op])
		case !f.IsZero():
			fmt.Fprintf(&b, ", %s: %#v", name, f)
		}
	}
	return "{" + strings.TrimPrefix(b.String(), ", ") + "}"
}

func (p program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "limit %+v, %d keys, %v:\n", p.limit, p.maxKeys, p.overflow)
	for _, c := range p.calls {
		fmt.Fprintf(&b, "\t%v,\n", c)
	}
	return b.String()
}

// answer is the result of a call, and the state that a caller can see before and after it.
type answer struct {
	decision, other tb.Decision
	delays          [2]time.Duration
	err             string
	ownBefore       tb.Level // of the key at the first instant, before the call
	level, late     tb.Level // of the key at the reading, and at the reading before the step
	own             tb.Level // of the key at the first instant: what it has at its own time
	absent          tb.Level // of a key that is never inserted
	kept            tb.Level // of a charge that keeps tokens
	stats           tb.Stats
	limit           tb.Limit
	saved           string // the states that restart restores
}

// held is a grant that can be ended, or a charge, and its key.
type held struct {
	tb.Held
	key string
}

// runner makes the calls of a program on a limiter, whose clock is now.
type runner struct {
	limiter
	renew   func(tb.Limit) limiter
	now     time.Time
	held    []held
	charges []held
}

// run makes p's calls and returns their answers.
func (r *runner) run(p program) []answer {
	var answers []answer
	r.levelAt(r.now, "absent") // starts the clock
	for _, c := range p.calls {
		r.now = r.now.Add(c.step)
		var ended tb.Held
		switch ends := c.op == cancel || c.op == settle; {
		case ends && len(r.held) == 0, c.op == retake && len(r.charges) == 0:
			c.op = peek
		case ends:
			h := r.held[len(r.held)-1-c.held%len(r.held)]
			c.key, ended = h.key, h.Held
		case c.op == retake:
			_, c.key = r.charge(c)
		}
		a := answer{ownBefore: r.levelAt(r.now.Add(-1<<63), c.key)}
		err := r.call(c, ended, &a)
		if err != nil {
			a.err = fmt.Sprintf("%T: %v", err, err)
		}
		a.level = r.levelAt(r.now, c.key)
		a.late = r.levelAt(r.now.Add(-c.step), c.key)
		a.own = r.levelAt(r.now.Add(-1<<63), c.key)
		a.absent = r.levelAt(r.now, "absent")
		a.stats = r.Stats()
		a.limit = r.Limit()
		answers = append(answers, a)
	}
	return answers
}

// call makes one call. cancel and settle end the given grant.
func (r *runner) call(c call, ended tb.Held, a *answer) (err error) {
	ctx := context.Background()
	switch c.op {
	case allowN:
		a.decision, err = r.AllowN(ctx, c.key, float64(c.n))
	case allowCost:
		a.decision, err = r.AllowN(ctx, c.key, c.cost)
	case allowAt:
		a.decision, err = r.AllowAt(r.now.Add(-c.step), c.key, float64(c.n))
	case peek:
		a.decision, err = r.Peek(ctx, c.key)
	case takeAll:
		return r.takeBoth(c, a)
	case reset:
		r.Reset(c.key)
	case reserve:
		var reservation tb.Reservation
		reservation, err = r.Reserve(ctx, c.key, c.cost)
		a.decision, a.delays[0] = reservation.Decision, reservation.Delay()
		if reservation.Allowed {
			r.held = append(r.held, held{reservation, c.key})
		}
	case wait:
		err = r.Wait(&waitContext{Context: ctx, runner: r, call: c}, c.key, float64(c.n))
	case cancel:
		ended.Cancel()
	case settle:
		err = ended.Settle(c.cost)
	case setLimit:
		err = r.SetLimit(c.limit)
	case retake:
		again, key := r.charge(c)
		if a.other, err = again.Peek(r.now); err == nil {
			a.decision, err = again.Take(r.now)
		}
		if a.delays[0] = again.Delay(); a.decision.Allowed {
			r.held = append(r.held, held{again, key})
		}
	case deepen:
		a.decision, a.delays[0] = goDeep(r, c.key, r.Limit().Capacity, r.now)
	case restart:
		return r.restart(c, a)
	case hold:
		err = r.Hold(ctx, c.key, r.now.Add(c.within))
	case keep:
		return r.keep(c, a)
	}
	return err
}

// keep takes a charge that keeps tokens, and whose refusal holds its key.
func (r *runner) keep(c call, a *answer) error {
	charge, err := r.Charge(c.key, c.cost)
	if err != nil {
		return err
	}
	charge.Keep(c.keep)
	charge.HoldOnRefusal(c.refusal)
	if a.other, err = charge.Peek(r.now); err == nil {
		a.decision, err = charge.Take(r.now)
	}
	if err == nil {
		a.kept, err = charge.Level(r.now)
	}
	r.charges = append(r.charges, held{charge, c.key})
	if a.decision.Allowed {
		r.held = append(r.held, held{charge, c.key})
	}
	return err
}

// charge returns the charge that retake takes again, and its key.
func (r *runner) charge(c call) (again charge, key string) {
	h := r.charges[len(r.charges)-1-c.held%len(r.charges)]
	return h.Held.(charge), h.key
}

// goDeep takes n tokens of key until the deepest debt refuses them, or 300 times. It returns the
// last decision, and the delay of the last grant.
func goDeep(l limiter, key string, n int, now time.Time) (last tb.Decision, delay time.Duration) {
	c, err := l.Charge(key, float64(n))
	if err != nil {
		panic(err)
	}
	c.MayWait(tb.Never)
	for i := 0; i == 0 || i < 300 && last.Allowed; i++ {
		delay = c.Delay()
		last, _ = c.Take(now)
	}
	return last, delay
}

// restart saves the limiter, and goes on with a new one.
func (r *runner) restart(c call, a *answer) error {
	states, limit := maps.Collect(r.Snapshot()), r.Limit()
	a.saved = fmt.Sprint(states)
	r.now = r.now.Add(c.within)
	r.held, r.charges = nil, nil
	if c.limit == (tb.Limit{}) {
		c.limit = limit
	}
	r.limiter = r.renew(c.limit)
	r.levelAt(r.now, "absent") // starts the clock
	if err := r.SetLimit(limit); err != nil {
		return err
	}
	return r.Restore(func(yield func(string, tb.State) bool) {
		for _, key := range slices.Sorted(maps.Keys(states)) {
			if !yield(key, states[key]) {
				return
			}
		}
	})
}

// levelAt returns the level of key at t. It asks a charge, because Limiter.Level reads the clock.
func (r *runner) levelAt(t time.Time, key string) tb.Level {
	c, err := r.Charge(key, 1)
	if err != nil {
		panic(err)
	}
	level, _ := c.Level(t)
	return level
}

// takeBoth takes c.cost from both c.key and c.other, or from neither. It makes a call on both keys
// first, so that they are in the table. Otherwise the order of eviction would not be exact: the
// key of an undone charge keeps its rank.
func (r *runner) takeBoth(c call, a *answer) (err error) {
	keys := []string{c.key, c.other}
	charges := make([]tb.Charge, 2)
	both := make([]charge, 2)
	for i, key := range keys {
		if _, err := r.AllowN(context.Background(), key, 1); err != nil {
			return err
		}
		if both[i], err = r.Charge(key, c.cost); err != nil {
			return err
		}
		if c.refusal > 0 {
			both[i].HoldOnRefusal(c.refusal)
		} else {
			both[i].MayWait(c.within)
		}
		charges[i] = both[i]
	}
	decisions, allowed, err := tb.TakeAll(r.now, charges, nil)
	if allowed != (decisions[0].Allowed && decisions[1].Allowed) {
		return fmt.Errorf("allowed %t, decisions %+v", allowed, decisions)
	}
	a.decision, a.other = decisions[0], decisions[1]
	for i, c := range both {
		r.charges = append(r.charges, held{c, keys[i]})
		a.delays[i] = c.Delay()
		if allowed {
			r.held = append(r.held, held{c, keys[i]})
		}
	}
	return err
}

// waitContext is the context of a wait.
type waitContext struct {
	context.Context
	runner *runner
	call   call
	ended  bool
}

func (c *waitContext) Deadline() (time.Time, bool) {
	return time.Now().Add(c.call.within), c.call.held%2 == 0
}

// Done returns nil if the context has a deadline: Wait does not sleep beyond it. Otherwise the
// context ends now.
func (c *waitContext) Done() <-chan struct{} {
	if c.call.held%2 == 0 {
		return nil
	}
	c.ended = true
	c.runner.now = c.runner.now.Add(c.call.within)
	done := make(chan struct{})
	close(done)
	return done
}

func (c *waitContext) Err() error {
	if c.ended {
		return context.Canceled
	}
	return nil
}
