package redis

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

// TestContract runs the suite on a limiter in slow motion, at the time of the suite's clock.
func TestContract(t *testing.T) {
	// A second of the suite is a thousand seconds of the server.
	s := startSimulator(t, plant(t, "t + 1000000 then", "t + 1e15 then"))
	const (
		slow = "a period of a century is too long for the script in slow motion"
		far  = "the instant is too far from the first one in slow motion, by more than 52 days"

		full  = "a full bucket has no key, and is full under the new limit"
		phase = "the units of each limit come at instants of their own, so a change may gain one"
		first = "the first call under a new limit converts a bucket, and not SetLimit"
	)
	tbtest.RunExcept(t, s.newSlowed, map[string]string{
		"DefaultClockIsMonotonic":    "a connection does not work in a synctest bubble",
		"ContextIsIgnored":           "a call leaves the process, and ends with its context",
		"RefusalsLeaveNoDrift":       "its million calls are a million commands",
		"WaitIsExactOnBothSides":     slow,
		"BoundWithBackwardClock":     slow,
		"TinyRates":                  slow,
		"LevelReportsTokensAndTimes": slow,
		"BucketIsNeverMoreThanFull":  slow,
		"CenturiesIdle":              far,
		"ReadingBeforeTheFirst":      far,

		"ReservationsFollowTheSupplyExactly": slow,
		"DebtIsAtMostOneCapacity":            slow,
		"CancelMintsNothing":                 slow,
		"SettledCostsFollowTheIdealBucket":   slow,
		"SetLimitKeepsTokens":                slow,

		"ClockIsReadOncePerCall":          "a call learns the clock by a second command",
		"BoundWithLateConcurrentReadings": "the server reads its clock in order",
		"CancelAfterResetChangesNothing":  "the server does not know of a Reset before",

		"SetLimitGivesIdleBucketsNothing":   full,
		"ManyChangesGiveIdleBucketsNothing": full,
		"ChangesFollowTheIdealBucket":       full,
		"SetLimitKeepsDebt":                 phase,
		"SettleAfterSetLimit":               phase,
		"SetLimitAfterAHold":                phase,
		"HoldsMerge":                        "the script has no instant after the year 2255",
		"KeepAndSetLimit":                   "a charge has the limit of when it was made",
		"ManyChangesOfTheRateLoseNothing":   first,
		"SetLimitAndLateReadings":           first,
	})
}

// slowed is a limiter in slow motion: a nanosecond of the suite is a microsecond of the server. So
// the suite finds the exact nanosecond of a RetryAfter, although the server's clock has µs.
type slowed struct {
	*Limiter
	now func() time.Time // of the suite
}

const slowness = int64(time.Microsecond)

// epoch is about the middle of the instants that a script can count, in µs.
const epoch = 1 << 52

var limiters atomic.Uint64

func (s *simulator) newSlowed(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
	o, err := tb.Apply(opts...)
	if err != nil {
		return nil, err
	}
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	if int64(limit.Per) > math.MaxInt64/slowness {
		return nil, errors.New("the limit is too slow for slow motion")
	}
	limit.Per *= time.Duration(slowness)
	m, err := newLayout(limit, 0)
	if err != nil {
		return nil, err
	}
	l, err := s.newLimiter(slowClock(o.Now, m.d), limit,
		WithPrefix(strconv.FormatUint(limiters.Add(1), 10)), WithMaxDenial(0))
	if err != nil {
		return nil, err
	}
	return slowed{l, o.Now}, nil
}

// slowClock returns the clock in slow motion. Its first reading is a whole number of periods after
// 1970, as the first instant of tb/mutex is after its epoch.
func slowClock(now func() time.Time, period uint64) func() time.Time {
	var first atomic.Pointer[time.Time]
	start := int64(epoch / period * period)
	return func() time.Time {
		t := now()
		first.CompareAndSwap(nil, &t)
		return time.UnixMicro(start + int64(t.Sub(*first.Load())))
	}
}

// normal returns a duration of the server as one of the suite, rounded up.
func normal(d time.Duration) time.Duration {
	if d == tb.Never {
		return d
	}
	return (d + time.Duration(slowness) - 1) / time.Duration(slowness)
}

func normalDecision(d tb.Decision, err error) (tb.Decision, error) {
	d.RetryAfter = normal(d.RetryAfter)
	return d, err
}

func (l slowed) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return normalDecision(l.Limiter.Allow(ctx, key))
}

func (l slowed) AllowN(ctx context.Context, key string, cost float64) (tb.Decision, error) {
	return normalDecision(l.Limiter.AllowN(ctx, key, cost))
}

func (l slowed) Peek(ctx context.Context, key string) (tb.Decision, error) {
	return normalDecision(l.Limiter.Peek(ctx, key))
}

func (l slowed) Level(ctx context.Context, key string) (tb.Level, error) {
	v, err := l.Limiter.Level(ctx, key)
	v.NextToken, v.Full = normal(v.NextToken), normal(v.Full)
	return v, err
}

func (l slowed) Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error) {
	r, err := l.Limiter.Reserve(ctx, key, cost)
	d, _ := normalDecision(r.Decision, nil)
	return tb.NewReservation(d, normal(r.Delay()), r), err
}

func (l slowed) SetLimit(limit tb.Limit) error {
	if err := limit.Validate(); err != nil {
		return err
	}
	if int64(limit.Per) > math.MaxInt64/slowness {
		return errors.New("the limit is too slow for slow motion")
	}
	limit.Per *= time.Duration(slowness)
	return l.Limiter.SetLimit(limit)
}

func (l slowed) Limit() tb.Limit {
	limit := l.Limiter.Limit()
	limit.Per /= time.Duration(slowness)
	return limit
}

// Wait hides the method from the suite: a connection does not work in a synctest bubble.
func (slowed) Wait() {}

func (l slowed) Reset(key string) {
	if err := l.Limiter.Reset(context.Background(), key); err != nil {
		panic(err)
	}
}

// Hold sends a hold for a time that does not shrink meanwhile.
func (l slowed) Hold(ctx context.Context, key string, until time.Time) error {
	left := until.Sub(l.now())
	if left <= 0 {
		return nil
	}
	_, err := l.call(ctx, l.layout.Load(), key, item{kind: kindHold, hold: uint64(left)})
	return err
}

func (l slowed) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.Limiter.Charge(key, cost)
	return slowedCharge{c, c.(*Charge)}, err
}

type slowedCharge struct {
	tb.Charge
	keeper interface{ Keep(tokens float64) }
}

func (c slowedCharge) Keep(tokens float64) { c.keeper.Keep(tokens) }

func (c slowedCharge) Peek(t time.Time) (tb.Decision, error) {
	return normalDecision(c.Charge.Peek(t))
}

func (c slowedCharge) Take(t time.Time) (tb.Decision, error) {
	return normalDecision(c.Charge.Take(t))
}
