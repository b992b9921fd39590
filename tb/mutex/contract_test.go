package mutex_test

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := mutex.New[string](limit, opts...)
		return limiter{l}, err
	})
}

// limiter returns its charges as tb.Charge, as the suite requires.
type limiter struct{ *mutex.TokenBucket }

func (l limiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

func TestKeysOfOtherTypes(t *testing.T) {
	tbtest.RunGeneric(
		t, mutex.New[tbtest.Name], mutex.New[tbtest.Composite], mutex.New[float64], mutex.New[any],
	)
}

func TestConstructor(t *testing.T) { tbtest.RunConstructor(t, mutex.NewTokenBucket) }

func TestInsertDropsSixteenIdleKeys(t *testing.T) {
	now := time.Unix(0, 0)
	l := mutex.NewTokenBucket(10, 1, tb.WithClock(func() time.Time { return now }))
	allow := func(key string, want int) {
		t.Helper()
		if d, err := l.Allow(t.Context(), key); err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", key, d, err)
		}
		if n := l.Len(); n != want {
			t.Fatalf("%d keys, want %d", n, want)
		}
	}
	for i := range 40 {
		allow(strconv.Itoa(i), i+1)
	}
	now = now.Add(61*time.Second - 1)
	allow("too early", 41)
	now = now.Add(1)
	allow("39", 41) // only an insert drops keys
	allow("first", 26)
	allow("second", 11)
	allow("third", 5) // left are too early, 39, first, second and third
}

func TestChargeOfNaNTakesNothing(t *testing.T) {
	l, err := mutex.New[float64](tb.Limit{Capacity: 1, Tokens: 1, Per: 1})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := l.Charge(1, 1)
	nan, _ := l.Charge(math.NaN(), 1)
	for _, charges := range [][]tb.Charge{{&nan}, {&one, &nan}} {
		if _, _, err := tb.TakeAll(time.Now(), charges, nil); !errors.Is(err, tb.ErrInvalidKey) {
			t.Errorf("TakeAll of %d charges: got %v, want ErrInvalidKey", len(charges), err)
		}
	}
	if n := l.Len(); n != 0 {
		t.Errorf("%d keys, want 0", n)
	}
}

// A charge of a limiter with a clock of its own needs a reading of it.
func TestChargeKnowsItsClock(t *testing.T) {
	for _, opts := range [][]tb.Option{nil, {tb.WithClock(time.Now)}} {
		l := mutex.NewTokenBucket(1, 1, opts...)
		c, _ := l.Charge("a", 1)
		inert, _ := l.Charge("a", 0)
		if got := c.HasClock(); got != (opts != nil) || inert.HasClock() {
			t.Errorf("%d options: %t, and %t if inert", len(opts), got, inert.HasClock())
		}
	}
}
