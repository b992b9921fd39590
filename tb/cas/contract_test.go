package cas_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

// TestMain fails if a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := cas.New[string](limit, opts...)
		return limiter{l}, err
	})
}

// limiter returns its charges as tb.Charge, as the suite requires.
type limiter struct{ *cas.TokenBucket }

func (l limiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

func TestKeysOfOtherTypes(t *testing.T) {
	tbtest.RunGeneric(
		t, cas.New[tbtest.Name], cas.New[tbtest.Composite], cas.New[float64], cas.New[any],
	)
}

func TestConstructor(t *testing.T) { tbtest.RunConstructor(t, cas.NewTokenBucket) }

// TestBucketContract runs the suite on single buckets, one for each key.
func TestBucketContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		_, err := cas.NewBucket(limit, opts...)
		return &buckets{limit: limit, opts: opts}, err
	})
}

// buckets is a limiter with a cas.Bucket for each key.
type buckets struct {
	mu    sync.Mutex // held while a bucket is made, and while the limit changes
	limit tb.Limit
	opts  []tb.Option
	byKey sync.Map
}

func (b *buckets) bucket(key string) *cas.Bucket {
	if bucket, ok := b.byKey.Load(key); ok {
		return bucket.(*cas.Bucket)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, err := cas.NewBucket(b.limit, b.opts...)
	if err != nil {
		panic(err)
	}
	first, _ := b.byKey.LoadOrStore(key, bucket)
	return first.(*cas.Bucket)
}

func (b *buckets) Allow(_ context.Context, key string) (tb.Decision, error) {
	return b.bucket(key).Allow(), nil
}

func (b *buckets) AllowN(_ context.Context, key string, cost float64) (tb.Decision, error) {
	return b.bucket(key).AllowN(cost)
}

func (b *buckets) AllowAt(t time.Time, key string, cost float64) (tb.Decision, error) {
	return b.bucket(key).AllowAt(t, cost)
}

func (b *buckets) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := b.bucket(key).Charge(cost)
	return &c, err
}

func (b *buckets) Reserve(
	_ context.Context, key string, cost float64,
) (tb.Reservation, error) {
	return b.bucket(key).Reserve(cost)
}

func (b *buckets) Wait(ctx context.Context, key string, cost float64) error {
	return b.bucket(key).Wait(ctx, cost)
}

func (b *buckets) SetLimit(limit tb.Limit) error {
	if err := limit.Validate(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
	var err error
	b.byKey.Range(func(_, bucket any) bool {
		err = errors.Join(err, bucket.(*cas.Bucket).SetLimit(limit))
		return true
	})
	return err
}

func (b *buckets) Hold(_ context.Context, key string, until time.Time) error {
	b.bucket(key).Hold(until)
	return nil
}

func (b *buckets) Limit() tb.Limit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

func (b *buckets) Peek(_ context.Context, key string) (tb.Decision, error) {
	return b.bucket(key).Peek(), nil
}

func (b *buckets) Level(_ context.Context, key string) (tb.Level, error) {
	return b.bucket(key).Level(), nil
}

func TestChargeOfNaNTakesNothing(t *testing.T) {
	l, err := cas.New[float64](tb.Limit{Capacity: 1, Tokens: 1, Per: 1})
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
