package redis

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// timeline drives a breaker at times in µs.
type timeline struct {
	t   *testing.T
	b   breaker
	now int64
}

// trip makes a trip without duration, and returns whether the breaker admitted it.
func (l *timeline) trip(h health) bool {
	var p pass
	if l.b.enter(&p, l.now) != nil {
		return false
	}
	l.b.report(&p, h, errTimeout, l.now)
	return true
}

func (l *timeline) want(state BreakerState, opened uint64) {
	l.t.Helper()
	if s, n := l.b.stats(); s != state || n != opened {
		l.t.Fatalf("%v, opened %d times, want %v, %d times", s, n, state, opened)
	}
}

// open opens the breaker by failures in a row.
func (l *timeline) open() {
	for range failuresInARow {
		l.trip(failed)
	}
}

func TestBreakerOpens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 15))
	for range 2000 {
		l := timeline{t: t}
		var last uint32 // the oracle: the last trips
		share := rng.Float64()
		for range 100 {
			h := healthy
			last = last << 1 & 0xfffff
			if rng.Float64() < share {
				h = failed
				last |= 1
			}
			l.trip(h)
			if h == failed && (last&0x1f == 0x1f || bits.OnesCount32(last) >= 10) {
				l.want(BreakerOpen, 1)
				break
			}
			l.want(BreakerClosed, 0)
		}
	}
}

func TestBreakerIgnoresTripsOfUnknownHealth(t *testing.T) {
	l := timeline{t: t}
	for range 100 {
		l.trip(unknown)
	}
	l.want(BreakerClosed, 0)
	l.open()
	l.now = time.Hour.Microseconds()
	if !l.trip(unknown) {
		t.Error("no probe after an hour")
	}
	l.want(BreakerOpen, 1)
}

// A server that answers is healthy, if it may decide another call.
func TestHealthOfErrors(t *testing.T) {
	want := map[Cause]health{
		Busy: unknown, Open: unknown, Timeout: unknown, Canceled: unknown,
		ReadOnly: healthy, OutOfMemory: healthy, Forbidden: healthy, Foreign: healthy,
		Unreachable: failed, Loading: failed, Cluster: failed, Rejected: failed,
	}
	for cause := range causes {
		if h, ok := want[cause]; !ok || healthOf(&Error{Cause: cause}) != h {
			t.Errorf("%v: health %d, want %d", cause, healthOf(&Error{Cause: cause}), h)
		}
	}
	if h := healthOf(nil); h != healthy {
		t.Errorf("no error: health %d", h)
	}
}

func TestOpenBreakerProbes(t *testing.T) {
	l := timeline{t: t}
	l.open()
	l.want(BreakerOpen, 1)
	var probes int
	last := l.now
	for l.now < (10 * time.Minute).Microseconds() {
		l.now += 1000
		if !l.trip(failed) {
			continue
		}
		probes++
		if d := l.now - last; d < 187_500 || d > 313_500 {
			t.Fatalf("a probe after %d µs, want a quarter around 250,000", d)
		}
		last = l.now
	}
	if probes < 2_300 || probes > 2_500 { // 2,400 in ten minutes
		t.Errorf("%d probes in ten minutes, want one each 250 ms", probes)
	}
	l.want(BreakerOpen, 1)
}

// After a probe, the trips under way are bounded by 8, 16, 32 and so on.
func TestBreakerRecoversByDoubling(t *testing.T) {
	l := timeline{t: t}
	l.open()
	l.now = time.Second.Microseconds()
	l.trip(healthy)
	for most := leastInFlight; most < maxInFlight; most *= 2 {
		l.want(BreakerRecovering, 1)
		passes := make([]pass, most)
		for i := range passes {
			if err := l.b.enter(&passes[i], l.now); err != nil {
				t.Fatalf("trip %d of %d: %v", i, most, err)
			}
		}
		wantCause(t, l.b.enter(&pass{}, l.now), Busy)
		for i := range passes {
			l.b.report(&passes[i], healthy, nil, l.now)
			l.b.report(&passes[i], failed, errTimeout, l.now) // the second report
		}
	}
	l.want(BreakerClosed, 1)
}

// Trips that began before the breaker opened say nothing about the server after it.
func TestLateReportsDoNotMoveTheBreaker(t *testing.T) {
	l := timeline{t: t}
	var stuck [20]pass
	for i := range stuck {
		if err := l.b.enter(&stuck[i], l.now); err != nil {
			t.Fatal(err)
		}
	}
	l.open()
	l.b.report(&stuck[0], healthy, nil, l.now)
	l.want(BreakerOpen, 1)
	l.now = time.Second.Microseconds()
	l.trip(healthy)
	for i := range stuck {
		l.b.report(&stuck[i], failed, errTimeout, l.now)
	}
	l.want(BreakerRecovering, 1)
	l.open()
	l.want(BreakerOpen, 2)
}
