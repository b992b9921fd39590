package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// otherStore is a store of limiters that have only AllowN. Its rules cannot delay, settle or change
// their limits, and costs are rounded up.
type otherStore struct {
	newLimiter func(rule string, limit tb.Limit) (tb.Limiter, error)
}

type otherLimiter struct {
	tb.Limiter
	limit tb.Limit
}

type otherCharge struct {
	limiter tb.Limiter
	key     string
	cost    float64
}

func (s otherStore) Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error) {
	if len(limits) > 1 {
		return nil, errors.New("this store has no tiers")
	}
	l, err := s.newLimiter(rule, limits[0])
	return []tb.StoreLimiter{otherLimiter{l, limits[0]}}, err
}

// TakeAll asks the charges until one refuses or fails. What the others have taken stays taken.
func (otherStore) TakeAll(
	ctx context.Context, _ time.Time, charges []tb.Charge, _ []tb.Decision,
) ([]tb.Decision, bool, error) {
	all := make([]tb.Decision, len(charges))
	for i, x := range charges {
		c := x.(otherCharge)
		d, err := c.limiter.AllowN(ctx, c.key, c.cost)
		if all[i] = d; err != nil || !d.Allowed {
			return all, false, err
		}
	}
	return all, true, nil
}

func (l otherLimiter) Limit() tb.Limit       { return l.limit }
func (otherLimiter) SetLimit(tb.Limit) error { return errors.ErrUnsupported }
func (l otherLimiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	return otherCharge{l, key, cost}, nil
}

func (otherCharge) Peek(time.Time) (tb.Decision, error) {
	return tb.Decision{}, errors.ErrUnsupported
}
func (c otherCharge) Take(time.Time) (tb.Decision, error) {
	return c.limiter.AllowN(context.Background(), c.key, c.cost)
}
func (otherCharge) Cancel()                           {}
func (otherCharge) Level(time.Time) (tb.Level, error) { return tb.Level{}, errors.ErrUnsupported }
func (otherCharge) MayWait(time.Duration)             {}
func (otherCharge) Keep(float64)                      {}
func (otherCharge) HoldOnRefusal(time.Duration)       {}
func (otherCharge) Delay() time.Duration              { return 0 }
func (otherCharge) Settle(float64) error              { return errors.ErrUnsupported }

// A store of any limiter. It is asked as it can answer: for what it cannot, it returns an error.
func ExampleWithStore() {
	store := otherStore{func(_ string, limit tb.Limit) (tb.Limiter, error) {
		return mutex.New[string](limit) // or another limiter
	}}
	limiter := httplimit.PerAddress(1, 0.001, httplimit.WithStore(store))
	for range 2 {
		w := httptest.NewRecorder()
		limiter.Middleware(hello).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 0
	// 429 0
}
