package fuzz

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// limiter is what the implementations have in common beyond tb.Limiter.
type limiter interface {
	tb.Limiter
	AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	AllowAt(t time.Time, key string, n int) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Reset(key string)
	Len() int
	Stats() tb.Stats
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
	reset
	ops
)

// call is made after the clock was moved by step, which may be negative. AllowAt is
// given the reading before that.
type call struct {
	step time.Duration
	op   op
	key  string
	n    int
	cost float64
}

func (c call) String() string {
	return fmt.Sprintf("{%d, %d, %q, %d, %v}", int64(c.step), c.op, c.key, c.n, c.cost)
}

func (p program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "limit %+v, %d keys, %v:\n", p.limit, p.maxKeys, p.overflow)
	for _, c := range p.calls {
		fmt.Fprintf(&b, "\t%v,\n", c)
	}
	return b.String()
}

// answer is all that a caller sees after a call.
type answer struct {
	decision tb.Decision
	err      error
	stats    tb.Stats
}

// run makes p's calls on l, whose clock is now, and returns what they answered.
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
		case reset:
			l.Reset(c.key)
		}
		a.stats = l.Stats()
		answers = append(answers, a)
	}
	return answers
}

// random returns a program over the whole range of configurations. The number of
// keys in the table is small enough that no insert meets more than 16 stale stamps,
// so that eviction is exact in every implementation.
func random(rng *rand.Rand, calls int) program {
	p := program{
		limit:    randomLimit(rng),
		maxKeys:  1 + rng.IntN(12),
		overflow: tb.Overflow(rng.IntN(2)),
	}
	// Most steps are near the time of one token, of a whole bucket, or nothing.
	token := float64(p.limit.Per) / float64(p.limit.Tokens)
	for range calls {
		c := call{op: allowN, key: string(rune('a' + rng.IntN(16))), n: 1}
		if rng.IntN(3) > 0 {
			c.op = op(rng.IntN(int(ops)))
			c.n = rng.IntN(p.limit.Capacity+2) - rng.IntN(2)
			c.cost = float64(c.n) * []float64{0.1, 0.25, 1, rng.Float64()}[rng.IntN(4)]
		}
		if c.op == reset && rng.IntN(4) > 0 {
			c.op = peek
		}
		c.step = randomStep(rng, token, token*float64(p.limit.Capacity))
		p.calls = append(p.calls, c)
	}
	return p
}

func randomLimit(rng *rand.Rand) tb.Limit {
	for {
		l := tb.Limit{
			Capacity: 1 << rng.IntN(31),
			Tokens:   1 << rng.IntN(63),
			Per:      time.Duration(1) << rng.IntN(63),
		}
		l.Capacity -= rng.IntN(l.Capacity)
		l.Tokens -= rng.Int64N(l.Tokens)
		l.Per += time.Duration(rng.Int64N(int64(l.Per)))
		if rng.IntN(2) == 0 { // what people write
			l = tb.Limit{Capacity: 1 + rng.IntN(100), Tokens: 1 + rng.Int64N(1000), Per: time.Second}
		}
		if l.Validate() == nil {
			return l
		}
	}
}

func randomStep(rng *rand.Rand, token, bucket float64) time.Duration {
	var d float64
	switch rng.IntN(8) {
	case 0, 1:
		return 0
	case 2, 3, 4:
		d = token * 2 * rng.Float64()
	case 5:
		d = bucket * 2 * rng.Float64()
	case 6:
		d = 2 * float64(time.Minute) * rng.Float64()
	case 7:
		d = math.Exp2(63 * rng.Float64())
	}
	if rng.IntN(6) == 0 {
		d = -d
	}
	return time.Duration(min(max(d, -1<<62), 1<<62)) + time.Duration(rng.IntN(3)-1)
}
