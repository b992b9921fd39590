package redis

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// stepped is put before the text of a script. The script then runs at the server's time and the
// seconds in the key "step". The text of the script is not changed.
const stepped = `
local real, redis = redis, {pcall = redis.pcall}
function redis.call(name, ...)
  local v = real.call(name, ...)
  if name == 'TIME' then v[1] = string.format('%d', v[1] + (real.call('GET', 'step') or 0)) end
  return v
end
`

// The server's clock is set by ten seconds. Forward, a bucket gains what the rate supplies in ten
// seconds. Backward, it gains as much by the time of the clients, and loses nothing.
func TestServerClockSteps(t *testing.T) {
	const step = 10
	s := redistest.Start(t)
	operator := dial(t, s)
	limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Second}
	l := newLimiter(t, dial(t, s), limit, WithMaxDenial(0))
	l.script = newScript(stepped + bucketsText)

	start := time.Now()
	supply := func() int64 { return int64(time.Since(start)/time.Second) + 1 } // since start, at most
	if d, err := l.AllowN(t.Context(), "a", 1000); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	var granted int64
	for i, seconds := range []int64{0, step, 0, -step, 0} {
		do(t, operator, "SET", "step", strconv.FormatInt(seconds, 10))
		before := granted
		for refused := false; !refused; {
			o := decide(t, l, "a", ByServer)
			if refused = !o.Allowed; refused && o.RetryAfter > time.Second {
				t.Errorf("step %d: a token in %v, want at most 1 s", i, o.RetryAfter)
			}
			if o.Allowed {
				granted++
			}
		}
		got, forward := granted-before, int64(0)
		if i == 1 || i == 4 { // the clock was set forward
			forward = step
		}
		if got < forward || got > forward+supply() {
			t.Errorf("step %d: %d tokens granted, want %d and the supply of the time since", i, got, forward)
		}
	}
	if s := l.Stats(); s.ClockSteps != 4 || len(s.Failed) > 0 {
		t.Errorf("Stats: %+v", s)
	}
}
