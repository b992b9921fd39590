package redis

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

type timeline struct {
	t   *testing.T
	b   breaker
	now int64
}

var errTest = &Error{CauseTimeout, context.DeadlineExceeded}

var seen = map[health]*Error{healthy: nil, unknown: {Cause: CauseBusy}, failed: errTest}

// call makes a call without duration, and returns whether the breaker admitted it.
func (l *timeline) call(h health) bool {
	opened, err := l.b.enter(l.now)
	if err != nil {
		return false
	}
	l.b.leave(opened)
	l.b.observe(l.now, seen[h], l.now)
	return true
}

func (l *timeline) want(state BreakerState, opened uint64) {
	l.t.Helper()
	if s, n := l.b.stats(); s != state || n != opened {
		l.t.Fatalf("%v, opened %d times, want %v, %d times", s, n, state, opened)
	}
}

func (l *timeline) open() {
	for range failuresInARow {
		l.call(failed)
	}
}

func TestBreakerOpens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 15))
	for range 2000 {
		l := timeline{t: t}
		var last uint32 // the oracle: the last calls
		share := rng.Float64()
		for range 100 {
			h := healthy
			last = last << 1 & 0xfffff
			if rng.Float64() < share {
				h = failed
				last |= 1
			}
			l.call(h)
			if h == failed && (last&0x1f == 0x1f || bits.OnesCount32(last) >= 10) {
				l.want(BreakerOpen, 1)
				break
			}
			l.want(BreakerClosed, 0)
		}
	}
}

func TestBreakerIgnoresCallsOfUnknownHealth(t *testing.T) {
	l := timeline{t: t}
	for range 100 {
		l.call(unknown)
	}
	l.want(BreakerClosed, 0)
	l.open()
	l.now = time.Hour.Microseconds()
	if !l.call(unknown) {
		t.Error("no probe after an hour")
	}
	l.want(BreakerOpen, 1)
}

// A server that answers is healthy, if it may decide another call.
func TestHealthOfErrors(t *testing.T) {
	want := map[Cause]health{
		CauseBusy: unknown, CauseOpen: unknown, CauseTimeout: failed, CauseCanceled: unknown,
		CauseOutOfMemory: healthy, CauseForbidden: healthy, CauseForeign: healthy,
		CauseUnreachable: failed, CauseLoading: failed, CauseReadOnly: failed, CauseCluster: failed,
		CauseRejected: failed, CauseUnauthenticated: failed,
	}
	for cause := range causes {
		h, ok := want[cause]
		if got := (&Error{Cause: cause}).health(); !ok || got != h {
			t.Errorf("%v: health %d, want %d", cause, got, h)
		}
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
		if !l.call(failed) {
			continue
		}
		probes++
		if d := l.now - last; d < 187_500 || d > 313_500 {
			t.Fatalf("a probe after %d µs, want a quarter around 250,000", d)
		}
		last = l.now
	}
	for d := range int64(2) {
		if l.now = l.b.probe - 1 + d; l.call(failed) != (d == 1) {
			t.Errorf("a call %d µs before the next probe is wrong", 1-d)
		}
	}
	if probes < 2_300 || probes > 2_500 { // 2,400 in ten minutes
		t.Errorf("%d probes in ten minutes, want one each 250 ms", probes)
	}
	l.want(BreakerOpen, 1)
}

// After a probe, the calls under way are bounded by 8, 16, 32 and so on.
func TestBreakerRecoversByDoubling(t *testing.T) {
	l := timeline{t: t}
	l.open()
	l.now = time.Second.Microseconds()
	l.call(healthy)
	for most := leastInFlight; most < maxInFlight; most *= 2 {
		l.want(BreakerRecovering, 1)
		for i := range most {
			if _, err := l.b.enter(l.now); err != nil {
				t.Fatalf("call %d of %d: %v", i, most, err)
			}
		}
		_, err := l.b.enter(l.now)
		wantCause(t, err, CauseBusy)
		for range most {
			l.b.leave(1)
			l.b.observe(l.now, nil, l.now)
		}
	}
	l.want(BreakerClosed, 1)
}

// What is under way when a failure is seen fails for the same reason, and says nothing more.
func TestBreakerCountsAFailureOnce(t *testing.T) {
	l := timeline{t: t}
	for i := range int64(failuresInARow - 1) {
		l.now += time.Second.Microseconds()
		for began := range 100 * i {
			l.b.observe(l.now-1-began, errTest, l.now+began)
		}
		l.b.observe(l.now-1, nil, l.now) // late, too
	}
	l.want(BreakerClosed, 0)
}

// Calls that began before the breaker opened say nothing about the server after it.
func TestLateReportsDoNotMoveTheBreaker(t *testing.T) {
	l := timeline{t: t, now: 1}
	const stuck = 20
	for range stuck {
		if _, err := l.b.enter(l.now); err != nil {
			t.Fatal(err)
		}
	}
	l.open()
	l.b.observe(0, nil, l.now)
	l.want(BreakerOpen, 1)
	l.now = time.Second.Microseconds()
	l.call(healthy)
	for range stuck {
		l.b.leave(0)
		l.b.observe(0, errTest, l.now)
	}
	l.want(BreakerRecovering, 1)
	admitted := 0
	for {
		if _, err := l.b.enter(l.now); err != nil {
			break
		}
		admitted++
	}
	if admitted != leastInFlight {
		t.Errorf("%d calls under way, want %d", admitted, leastInFlight)
	}
	l.b.leave(1)
	l.open()
	l.want(BreakerOpen, 2)
}
