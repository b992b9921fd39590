package redis

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// A history of calls on one key is linearizable if tb/mutex makes the same decisions, in some order
// of the calls in which no call comes before one that had returned when it was made. Each call
// brings the time at which it was decided.

type historyCall struct {
	n  int // tokens, or 0 for a Reset
	at uint64
	// A local refusal by a limiter that may not have seen the latest grants: it says only that the
	// call is refused.
	partial bool
}

// past is a state of tb/mutex: the grants and resets that led to it. States form a tree.
type past struct {
	limit   tb.Limit
	parent  *past
	last    historyCall
	replies map[historyCall]tb.Decision
	next    map[historyCall]*past
}

func newPast(limit tb.Limit, parent *past, last historyCall) *past {
	return &past{limit, parent, last, map[historyCall]tb.Decision{}, map[historyCall]*past{}}
}

func (p *past) limiter() *mutex.TokenBucket {
	if p.parent == nil {
		l, err := mutex.New[string](p.limit, tb.WithClock(time.Now))
		if err != nil {
			panic(err)
		}
		_, _ = l.AllowAt(time.Unix(0, 0), "the first reading", 1)
		return l
	}
	l := p.parent.limiter()
	p.last.on(l)
	return l
}

func (c historyCall) on(l *mutex.TokenBucket) tb.Decision {
	if c.n == 0 {
		l.Forget("a")
		return tb.Decision{}
	}
	d, _ := l.AllowAt(time.UnixMicro(int64(c.at)), "a", float64(c.n))
	return d
}

func (p *past) then(c historyCall) (tb.Decision, *past) {
	d, ok := p.replies[c]
	if !ok {
		d = c.on(p.limiter())
		p.replies[c] = d
	}
	if c.n > 0 && !d.Allowed {
		return d, p
	}
	if p.next[c] == nil {
		p.next[c] = newPast(p.limit, p, c)
	}
	return d, p.next[c]
}

func isLinearizable(limit tb.Limit, history []porcupine.Operation) bool {
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return newPast(limit, nil, historyCall{}) },
		Step: func(state, in, out any) (bool, any) {
			c, got := in.(historyCall), out.(tb.Decision)
			want, next := state.(*past).then(c)
			if c.partial {
				return !want.Allowed && !got.Allowed, next
			}
			return got == want, next
		},
	}, history)
}

// play makes random calls on limiters that share buckets, 8 goroutines at a time, and returns the
// history of each bucket. Only one limiter with batching sees all grants.
func play(t *testing.T, rng *rand.Rand, sees bool, keys []string, limiters []*Limiter) (
	histories map[string][]porcupine.Operation, local int64,
) {
	t.Helper()
	const callers = 8
	m := limiters[0].layout.Load()
	histories = make(map[string][]porcupine.Operation)
	var events, locals atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range callers {
		l := limiters[i%len(limiters)]
		seed := rng.Uint64()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			for range 1 + rng.IntN(6*len(keys)) {
				key := keys[rng.IntN(len(keys))]
				c := historyCall{n: rng.IntN(int(m.capacity/m.scale) + 1)}
				if c.n == 0 && (rng.IntN(4) > 0 || len(limiters) > 1) { // the others do not see a Reset
					c.n = 1
				}
				var d tb.Decision
				call := events.Add(1)
				if rng.IntN(4) == 0 {
					runtime.Gosched()
				}
				if c.n == 0 {
					if err := l.Reset(t.Context(), key); err != nil {
						t.Error(err)
					}
				} else {
					units := m.unitsOf(float64(c.n))
					s, local, err := l.ask(t.Context(), key, units)
					if err != nil {
						t.Error(err)
					}
					d, c.at = m.apply(&s, &item{units: units}).Decision, s.now
					c.partial = local && !sees
					if local {
						locals.Add(1)
					}
				}
				o := porcupine.Operation{
					ClientId: i, Input: c, Call: call, Output: d, Return: events.Add(1),
				}
				mu.Lock()
				histories[key] = append(histories[key], o)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return histories, locals.Load()
}

var historyLimits = []tb.Limit{
	{Capacity: 3, Tokens: 7, Per: time.Millisecond},
	{Capacity: 10, Tokens: 2, Per: time.Millisecond},
	{Capacity: 5, Tokens: 99_983, Per: time.Second},
	{Capacity: 4, Tokens: 1, Per: time.Second},
}

func TestHistoriesAreLinearizable(t *testing.T) {
	histories := 100
	if *everything {
		histories = 400
	}
	c := dial(t, redistest.Start(t))
	for _, form := range []struct {
		name     string
		sees     bool
		limiters int
		keys     []string
		opts     []Option
	}{
		{"batching", true, 1, []string{"a"}, nil},
		{"several keys", true, 1, []string{"a", "b", "c"}, nil},
		{"without batching", false, 1, []string{"a"}, []Option{WithoutBatching()}},
		{"two limiters", false, 2, []string{"a"}, nil},
	} {
		t.Run(form.name, func(t *testing.T) {
			var local, calls int64
			var commands uint64
			for seed := range uint64(histories) {
				rng := rand.New(rand.NewPCG(seed, 23))
				limit := historyLimits[rng.IntN(len(historyLimits))]
				prefix := WithPrefix(form.name + strconv.FormatUint(seed, 10))
				var all []*Limiter
				for range form.limiters {
					l := newLimiter(t, c, limit, append(form.opts, prefix)...)
					l.pending.flushes = maxShared - 1 // so that keys must share commands
					all = append(all, l)
				}
				histories, n := play(t, rng, form.sees, form.keys, all)
				for key, history := range histories {
					if !isLinearizable(limit, history) {
						t.Fatalf("seed %d, limit %+v, key %s: not linearizable: %+v",
							seed, limit, key, history)
					}
					calls += int64(len(history))
				}
				local += n
				for _, l := range all {
					commands += l.Stats().Commands
				}
			}
			t.Logf("%d calls, %d refused locally, %d commands", calls, local, commands)
			if local < calls/20 {
				t.Error("too few calls were refused locally")
			}
		})
	}
}

// ask takes units from key's bucket, or none, and returns the bucket before. local says that the
// server was not asked, because it would refuse.
func (l *Limiter) ask(
	ctx context.Context, key string, units uint64,
) (before state, local bool, err error) {
	if s, ok := l.isDenied(key, units); ok {
		return s, true, nil
	}
	s, err := l.execUnits(ctx, key, units)
	return s, false, err
}
