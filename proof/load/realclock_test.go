package load

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

var realTime = flag.Duration("real", 0, "how long TestRealClock calls a limiter; one round if 0")

// A limiter lives for as long as -real says, with the machine's clock, four hot keys and a flood of
// new keys in a small table. Round after round is audited: C1 and C2 of each hot key, from the
// first call to the last. scripts/soak-core runs processes with other settings of the runtime.
func TestRealClock(t *testing.T) {
	ld := &load{
		// A bucket from which nothing is taken is full after three hours. So no bucket is full on a busy
		// machine, either.
		limit: perSecond(1<<20, 100), keys: 4, maxKeys: 64, flood: 2, real: true,
	}
	const calls = 50 * callers
	l, err := cas.New[string](ld.limit, tb.WithMaxKeys(ld.maxKeys))
	if err != nil {
		t.Fatal(err)
	}
	r := ld.on(l)
	all := newJudges(ld.limit, ld.keys)
	playBack(all, r.drain())
	rounds := 0
	for rounds == 0 || r.clock() < *realTime {
		playBack(all, r.round(calls))
		rounds++
	}
	playBack(all, r.takeRest())
	t.Logf("%d rounds of %d calls, %d new keys, in %.0f s; GOMAXPROCS=%d GOGC=%s", rounds, calls,
		r.flooded.Load(), r.clock().Seconds(), runtime.GOMAXPROCS(0), os.Getenv("GOGC"))
	for key, a := range all {
		t.Logf("key %d: %d granted, %d refusals", key, a.granted, a.refusals)
		if a.overdrawn > 0 || a.lost > 0 {
			t.Errorf("key %d: %d rounds violate C1, and %d refusals C2; %s", key, a.overdrawn, a.lost,
				a.first)
		}
		per := int64(ld.limit.Per)
		if least := (a.most(a.latestDone) - a.quantum()) / per; int64(a.granted) < least {
			t.Errorf("key %d: %d granted, want at least %d", key, a.granted, least)
		}
	}
	if stats := l.Stats(); stats.EvictedFull == 0 && stats.EvictedInDebt == 0 {
		t.Errorf("%+v: no eviction", stats)
	}
}
