package fuzz

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// limiter has the methods that both implementations have.
type limiter interface {
	tb.Limiter
	AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	AllowAt(t time.Time, key string, n int) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Level(ctx context.Context, key string) (tb.Level, error)
	Charge(key string, cost float64) (tb.Charge, error)
	Reset(key string)
	Len() int
	Stats() tb.Stats
}

// casLimiter and mutexLimiter are the implementations as limiters.
type casLimiter struct{ *cas.TokenBucket }

func (l casLimiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

type mutexLimiter struct{ *mutex.TokenBucket }

func (l mutexLimiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
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
)

// call is a call that is made after the clock has moved by step, which may be negative. AllowAt
// gets the reading before the step. TakeAll takes from the two keys key and other, which may be
// the same.
type call struct {
	step  time.Duration
	op    op
	key   string
	n     int
	cost  float64
	other string
}

func (c call) String() string {
	return fmt.Sprintf("{%d, %d, %q, %d, %v, %q}",
		int64(c.step), c.op, c.key, c.n, c.cost, c.other)
}

func (p program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "limit %+v, %d keys, %v:\n", p.limit, p.maxKeys, p.overflow)
	for _, c := range p.calls {
		fmt.Fprintf(&b, "\t%v,\n", c)
	}
	return b.String()
}

// answer is the result of a call, and the state that a caller can see after it.
type answer struct {
	decision, other tb.Decision
	err             error
	stats           tb.Stats
	level, late     tb.Level // of the key at the reading, and at the reading before the step
	absent          tb.Level // of a key that is never inserted
}

// run makes p's calls on l, whose clock is now, and returns their answers.
func (p program) run(l limiter, now *time.Time) []answer {
	ctx := context.Background()
	var answers []answer
	for _, c := range p.calls {
		*now = now.Add(c.step)
		var a answer
		switch c.op {
		case allowN:
			a.decision, a.err = l.AllowN(ctx, c.key, c.n)
		case allowCost:
			a.decision, a.err = l.AllowCost(ctx, c.key, c.cost)
		case allowAt:
			a.decision, a.err = l.AllowAt(now.Add(-c.step), c.key, c.n) // the clock before the step
		case peek:
			a.decision, a.err = l.Peek(ctx, c.key)
		case takeAll:
			a.decision, a.other, a.err = takeBoth(l, *now, c)
		case reset:
			l.Reset(c.key)
		}
		a.stats = l.Stats()
		a.level, _ = l.Level(ctx, c.key)
		a.late = levelAt(l, now.Add(-c.step), c.key)
		a.absent, _ = l.Level(ctx, "absent")
		answers = append(answers, a)
	}
	return answers
}

// levelAt returns the level of key at t. It asks a charge, because Limiter.Level reads the clock.
func levelAt(l limiter, t time.Time, key string) tb.Level {
	c, err := l.Charge(key, 1)
	if err != nil {
		panic(err)
	}
	level, _ := c.(interface {
		Level(t time.Time) (tb.Level, error)
	}).Level(t)
	return level
}

// takeBoth takes c.cost from both c.key and c.other, or from neither. It makes a call on both keys
// first, so that they are in the table. Otherwise the order of eviction would not be exact: the
// key of an undone charge keeps its rank.
func takeBoth(l limiter, now time.Time, c call) (one, other tb.Decision, err error) {
	charges := make([]tb.Charge, 2)
	for i, key := range []string{c.key, c.other} {
		if _, err := l.AllowN(context.Background(), key, 1); err != nil {
			return one, other, err
		}
		if charges[i], err = l.Charge(key, c.cost); err != nil {
			return one, other, err
		}
	}
	var decisions [2]tb.Decision
	allowed, err := tb.TakeAll(now, charges, decisions[:])
	if allowed != (decisions[0].Allowed && decisions[1].Allowed) {
		return one, other, fmt.Errorf("allowed %t, decisions %+v", allowed, decisions)
	}
	return decisions[0], decisions[1], err
}
