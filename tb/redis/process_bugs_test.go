package redis

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// few is a contest in which each process makes a few calls. It finds a bug that each call shows, on
// any machine.
func few(t *testing.T, k task) []event {
	k.Goroutines, k.Costs = 1, []float64{1}
	ps := startProcesses(t, contestants, k)
	ps.begin(t, 20)
	ps.await(t)
	return append(ps.end(t, nil), ps.drain(t, k)...)
}

// processBug is a bug of a worker, and a contest that shows it.
type processBug struct {
	plant   func(*worker)
	task    task
	contest contest
	found   func(verdict) bool
}

// clientTime is put before the script, which then runs at the time of its last argument.
const clientTime = `
local now, real = tonumber(table.remove(ARGV)), redis
local redis = {pcall = real.pcall}
function redis.call(name, ...)
  if name ~= 'TIME' then return real.call(name, ...) end
  return {string.format('%.0f', math.floor(now / 1e6)), string.format('%.0f', now % 1e6)}
end
`

var processBugs = map[string]processBug{
	"the clock of the client": {
		plant: func(w *worker) {
			w.l.script = newScript(clientTime + bucketsText)
			w.l.client = &timed{w.l.client, func() time.Time { return time.Now().Add(time.Hour) }}
		},
		task:    task{Limit: thousand},
		contest: few,
		found:   func(v verdict) bool { return v.skewed > 0 },
	},
	"a grant takes twice": {
		plant: func(w *worker) {
			w.decide = func(ctx context.Context, key string, units uint64) (result, error) {
				r, err := w.l.decideUnits(ctx, key, units)
				if r.Allowed {
					_, err = w.l.execUnits(ctx, key, units)
				}
				return r, err
			}
		},
		// Nothing comes in the time of the contest.
		task:    task{Limit: tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}},
		contest: few,
		found:   func(v verdict) bool { return v.early > 0 },
	},
	"a local refusal does not end": {
		plant: func(w *worker) {
			var refused atomic.Bool
			w.decide = func(ctx context.Context, key string, units uint64) (result, error) {
				if refused.Load() {
					return result{Outcome: Outcome{By: ByDenialCache}}, nil
				}
				r, err := w.l.decideUnits(ctx, key, units)
				if !r.Allowed {
					refused.Store(true)
				}
				return r, err
			}
		},
		// A slow machine drains the bucket, too.
		task:    task{Limit: tb.Limit{Capacity: 100, Tokens: 200, Per: time.Second}},
		contest: burst(untilRefused),
		found:   func(v verdict) bool { return v.early > 0 },
	},
	"the whole capacity": {
		plant: func(w *worker) {
			whole, _ := newLayout(w.Limit, 0) // the limiter has the limit already
			whole.leased = true
			w.l.layout.Store(whole)
		},
		task:    longLeases,
		contest: burst(untilLeased),
		found:   func(v verdict) bool { return v.excess > 1 },
	},
	"leases end late": {
		plant:   func(w *worker) { w.l.leases.life = time.Hour.Microseconds() },
		task:    shortLeases,
		contest: burst(untilLeased),
		found:   func(v verdict) bool { return v.excess > 1 },
	},
}

func TestProcessBugsAreFound(t *testing.T) {
	for name, b := range processBugs {
		t.Run(name, func(t *testing.T) {
			b.task.Bug = name
			v := judge(t, b.task, b.contest(t, b.task))
			t.Logf("%+v", v)
			if !b.found(v) {
				t.Error("the bug is not found")
			}
		})
	}
}
