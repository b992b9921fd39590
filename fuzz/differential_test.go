package fuzz

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var programs = flag.Int("programs", 20_000, "how many random programs to compare")

// both runs p on both implementations and reports the first answer that differs.
func both(t *testing.T, p program) []answer {
	t.Helper()
	var now [2]time.Time
	options := func(i int) []tb.Option {
		return []tb.Option{
			tb.WithClock(func() time.Time { return now[i] }),
			tb.WithMaxKeys(p.maxKeys), tb.WithOverflow(p.overflow),
		}
	}
	c, err := cas.New[string](p.limit, options(0)...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mutex.New[string](p.limit, options(1)...)
	if err != nil {
		t.Fatal(err)
	}
	got, want := p.run(c, &now[0]), p.run(m, &now[1])
	for i := range got {
		if got[i] != want[i] {
			p.calls = p.calls[:i+1]
			t.Fatalf("%v\ncas   %+v\nmutex %+v", p, got[i], want[i])
		}
	}
	return got
}

func TestImplementationsAgreeOnRandomPrograms(t *testing.T) {
	programs := *programs
	var granted, refused, waits, evicted, forgiven, turnedAway int
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 0))
		answers := both(t, random(rng, 60))
		for _, a := range answers {
			switch {
			case a.decision.Allowed:
				granted++
			case a.err == nil:
				refused++
				if a.decision.RetryAfter < tb.Never {
					waits++
				}
			}
		}
		last := answers[len(answers)-1].stats
		evicted += int(last.EvictedFull)
		forgiven += int(last.EvictedInDebt)
		turnedAway += int(last.RefusedNew)
	}
	// A schedule generator that reaches only half of the contract proves little.
	t.Logf("granted %d, refused %d (%d with a wait), evicted full %d, in debt %d, new refused %d",
		granted, refused, waits, evicted, forgiven, turnedAway)
	for _, n := range []int{granted, refused, waits, evicted, forgiven, turnedAway} {
		if n < programs/4 {
			t.Errorf("the programs hardly reach one of the outcomes above")
		}
	}
}
