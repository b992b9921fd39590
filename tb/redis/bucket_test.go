package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

func perSecond(capacity int, tokens int64) tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: tokens, Per: time.Second}
}

// noon is an instant in µs that is a whole second.
const noon = 1_750_000_000_000_000

// bucket is a bucket in simulated time. Its first error stays.
type bucket struct {
	*simulator
	key string
	err error
}

// bucket returns a full bucket.
func (s *simulator) bucket(name string) *bucket {
	b := &bucket{simulator: s, key: name}
	b.fill()
	return b
}

// fill makes the bucket full, by removing its key.
func (b *bucket) fill() {
	del := b.client.B().Del().Key(b.key).Build()
	if err := b.client.Do(context.Background(), del).Error(); err != nil {
		b.errorf("%w", err)
	}
}

func (b *bucket) errorf(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// apply makes an item happen at an instant in µs, and returns its result and the state before.
func (b *bucket) apply(limit tb.Limit, now uint64, it item) (effect, state) {
	m, err := newLayout(limit, 0)
	if err != nil {
		b.errorf("%w", err)
		return effect{}, state{}
	}
	r, err := b.run(now, 1, m.part(b.key, it))
	if err != nil {
		b.errorf("%w", err)
		return effect{}, state{}
	}
	found, failure := r.bucket(0)
	if failure != nil {
		b.errorf("%w", failure)
	}
	before := m.found(found, r.now)
	after := before
	return m.apply(&after, &it), before
}

// take takes whole tokens at an instant in µs, and returns the decision and the state before.
func (b *bucket) take(limit tb.Limit, now uint64, tokens int) (tb.Decision, state) {
	m, err := newLayout(limit, 0)
	if err != nil {
		b.errorf("%w", err)
		return tb.Decision{}, state{}
	}
	e, before := b.apply(limit, now, item{units: m.unitsOf(float64(tokens))})
	return e.Decision, before
}

// want takes tokens, and compares the decision.
func (b *bucket) want(limit tb.Limit, now uint64, tokens int, want tb.Decision) {
	if got, _ := b.take(limit, now, tokens); got != want {
		b.errorf("%d tokens of %+v at noon%+d µs: %+v, want %+v",
			tokens, limit, int64(now-noon), got, want)
	}
}

// value returns the value of the key without the expiry before it, and the expiry in ms.
func (b *bucket) value() (value string, expiry uint64) {
	v, err := b.client.Do(context.Background(), b.client.B().Get().Key(b.key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", 0
	}
	if err != nil || len(v) < 8 {
		b.errorf("the value is %q, %v", v, err)
		return "", 0
	}
	return v[8:], uint64(math.Float64frombits(binary.BigEndian.Uint64([]byte(v))))
}

func granted(remaining int) tb.Decision { return tb.Decision{Allowed: true, Remaining: remaining} }

func refused(retry time.Duration, remaining int) tb.Decision {
	return tb.Decision{RetryAfter: retry, Remaining: remaining}
}
