package linearizable

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/lockstep"
	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// TestPairsAreLinearizable makes two calls on one key at the same time, as closely as two
// goroutines can, and then a call that shows the tokens left. In random histories, calls mostly
// overlap because a goroutine is descheduled, and that is rare between two instructions.
func TestPairsAreLinearizable(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds /= 10
	}
	s := &scenario{limit: tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, maxKeys: 1 << 20}
	l := newSession(s, func(opts ...tb.Option) (limiter, error) {
		return cas.New[string](s.limit, opts...)
	})
	pairs := make([][2]*request, rounds)
	for i := range pairs {
		pairs[i] = [2]*request{allow(time.Second, key(i), 3), allow(2*time.Second, key(i), 4)}
		_, _ = l.AllowAt(span.Origin.Add(time.Second), key(i), 1)
	}
	r := newRecorder(l, 2)
	lockstep.Run(rounds, func(i, round int) { r.call(i, pairs[round][i]) }, func(round int) {
		r.call(0, allow(2*time.Second, key(round), 11))
		history := r.history()
		first := history[0]
		first.Input, first.Output = allow(time.Second, key(round), 1),
			reply{Decision: tb.Decision{Allowed: true, Remaining: 9}}
		first.Call, first.Return = -1, 0
		if history = append(history, first); !s.linearizable(history) {
			s.log(t, history)
			t.Errorf("round %d: not linearizable", round)
		}
		clear(r.calls)
	})
}
