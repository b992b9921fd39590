package redis

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

const patient = time.Minute

var slow = tb.Limit{Capacity: 10, Tokens: 1, Per: 24 * time.Hour}

func newLimiter(t testing.TB, c rueidis.Client, limit tb.Limit, opts ...Option) *Limiter {
	t.Helper()
	l, err := New(c, limit, append([]Option{WithTimeout(patient)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// execUnits takes costs from the bucket of key, and returns the bucket before.
func (l *Limiter) execUnits(ctx context.Context, key string, costs ...uint64) (state, error) {
	var items []item
	for _, c := range costs {
		items = append(items, item{units: c})
	}
	return l.call(ctx, l.layout.Load(), key, items...)
}

func (l *Limiter) isDenied(key string, units uint64) (state, bool) {
	return l.denied(l.layout.Load(), key, &item{units: units})
}

func newState(time, deficit, now uint64) state {
	return state{time: time, deficit: deficit, now: now, was: time, lacked: deficit}
}

func newSight(l *Limiter, s state, sent, received int64, resets uint64) sight {
	return sight{s, l.layout.Load(), sent, received, resets}
}

func do(t testing.TB, c rueidis.Client, command ...string) rueidis.RedisMessage {
	t.Helper()
	m, err := c.Do(t.Context(), c.B().Arbitrary(command...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", command, err)
	}
	return m
}

func text(t testing.TB, c rueidis.Client, command ...string) string {
	t.Helper()
	m := do(t, c, command...)
	s, err := m.ToString()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return s
}

func number(t testing.TB, c rueidis.Client, command ...string) int64 {
	t.Helper()
	m := do(t, c, command...)
	n, err := m.AsInt64()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return n
}

func wantCause(t testing.TB, err error, want Cause) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Cause != want {
		t.Errorf("got error %v, want cause %v", err, want)
	}
}

func wantTake(t testing.TB, l *Limiter, key string, cost float64, want tb.Decision) {
	t.Helper()
	if d, err := l.AllowN(t.Context(), key, cost); err != nil || d != want {
		t.Errorf("%v tokens of %s: %+v, %v, want %+v", cost, key, d, err, want)
	}
}

// wantTokens wants these tokens in the bucket of a key, or a hundredth more.
func wantTokens(
	t testing.TB, l interface {
		Level(ctx context.Context, key string) (tb.Level, error)
	}, key string, want float64,
) {
	t.Helper()
	if v, err := l.Level(t.Context(), key); err != nil || v.Tokens < want || v.Tokens > want+0.01 {
		t.Errorf("%s: %+v, %v, want %v tokens", key, v, err, want)
	}
}

func TestLimiter(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	ctx := t.Context()
	for i := range 7 {
		wantTake(t, l, "a", 1, granted(9-i))
	}
	wantTake(t, l, "a", 0.5, granted(2))
	const day = 24 * time.Hour
	if d, err := l.AllowN(ctx, "a", 3); err != nil || d.Allowed || d.Remaining != 2 ||
		d.RetryAfter > day/2 || d.RetryAfter < day/2-time.Minute {
		t.Errorf("3 tokens of 2.5: %+v, %v", d, err)
	}
	wantTake(t, l, "a", 11, refused(tb.Never, 2))
	if d, err := l.Peek(ctx, "a"); err != nil || d != granted(1) {
		t.Errorf("Peek: %+v, %v", d, err)
	}
	if v, err := l.Level(ctx, "a"); err != nil || math.Abs(v.Tokens-2.5) > 0.001 ||
		v.NextToken > day/2 || v.Full > 15*day/2 || v.Full < 15*day/2-time.Minute {
		t.Errorf("Level: %+v, %v", v, err)
	}
	for _, cost := range []float64{0, -1, math.MinInt, math.NaN(), math.Inf(1)} {
		if _, err := l.AllowN(ctx, "a", cost); !errors.Is(err, tb.ErrInvalidCost) {
			t.Errorf("cost %v: got error %v, want ErrInvalidCost", cost, err)
		}
	}
	wantTake(t, l, "a", math.MaxFloat64, refused(tb.Never, 2))
	wantTake(t, l, "b", 10, granted(0))
	if err := l.Reset(ctx, "a"); err != nil {
		t.Error(err)
	}
	if v, err := l.Level(ctx, "a"); err != nil || v != (tb.Level{Tokens: 10}) {
		t.Errorf("Level after Reset: %+v, %v", v, err)
	}
	s := l.Stats()
	if s.Granted != 9 || s.Refused != 3 || len(s.Failed) > 0 || s.Loaded != 0 || s.Stale != 0 ||
		s.Commands != 9+3+4 || s.InFlight > 2 || s.ClockSteps != 0 {
		t.Errorf("Stats: %+v", s)
	}
	if s.Offset.Abs() > s.OffsetError || s.OffsetError == 0 { // the server has the same clock
		t.Errorf("the server's clock is ahead by %v ± %v, want 0", s.Offset, s.OffsetError)
	}
}

// A key lives until its bucket is full, and a refusal does not write it.
func TestCommandsOfTheServer(t *testing.T) {
	c := dial(t, redistest.Start(t))
	l := newLimiter(t, c, slow, WithMaxDenial(0))
	wantTake(t, l, "a", 10, granted(0))
	s := l.layout.Load().found([]byte(text(t, c, "GET", "tb:{a}")), 0)
	ms, full := number(t, c, "PEXPIRETIME", "tb:{a}"), int64(s.was)+10*86_400_000_000
	if ms*1000 <= full || (ms-1)*1000 > full {
		t.Errorf("%+v expires at %d ms", s, ms)
	}
	do(t, c, "CONFIG", "RESETSTAT")
	for range 100 {
		if decide(t, l, "a", ByServer).Allowed {
			t.Fatal("granted")
		}
	}
	for command, calls := range map[string]float64{"evalsha": 100, "get": 100, "time": 100, "set": 0} {
		if n := figure(t, c, "commandstats", "cmdstat_"+command+":calls"); n != calls {
			t.Errorf("100 refusals have called %s %v times, want %v", command, n, calls)
		}
	}
}
