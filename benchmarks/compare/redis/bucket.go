package redis

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The three approaches keep a bucket in a hash with two fields: the tokens, as a decimal
// fraction, and the time to which the bucket is refilled, in milliseconds of the client's clock.
const (
	tokensField = "tokens"
	timeField   = "ts"
)

// settings are the arguments of the three approaches.
type settings struct {
	rate     float64 // tokens per second
	capacity float64
	ttl      time.Duration // more than the time in which an empty bucket becomes full
}

func newSettings(limit tb.Limit) settings {
	s := settings{
		rate:     float64(limit.Tokens) / limit.Per.Seconds(),
		capacity: float64(limit.Capacity),
	}
	s.ttl = time.Duration(s.capacity/s.rate*float64(time.Second)) + time.Second
	return s
}

// bucket is the state of a key.
type bucket struct {
	tokens float64
	at     int64 // milliseconds
}

// read returns the bucket of a key, or a full one if there is none.
func (s settings) read(
	ctx context.Context, client goredis.HashCmdable, key string, now int64,
) (b bucket, err error) {
	fields, err := client.HMGet(ctx, key, tokensField, timeField).Result()
	if err != nil {
		return bucket{}, err
	}
	tokens, known := fields[0].(string)
	at, complete := fields[1].(string)
	if !known || !complete {
		return bucket{s.capacity, now}, nil
	}
	var invalid error
	b.tokens, err = strconv.ParseFloat(tokens, 64)
	b.at, invalid = strconv.ParseInt(at, 10, 64)
	return b, errors.Join(err, invalid)
}

// take refills the bucket up to now and takes one token if it can. Time never moves back.
func (s settings) take(b bucket, now int64) (after bucket, granted bool) {
	if now > b.at {
		b.tokens = math.Min(s.capacity, b.tokens+float64(now-b.at)*s.rate/1000)
		b.at = now
	}
	if granted = b.tokens >= 1; granted {
		b.tokens--
	}
	return b, granted
}

// fields returns the fields to write.
func (b bucket) fields() []any { return []any{tokensField, b.tokens, timeField, b.at} }
