package redis

import (
	"context"
	_ "embed"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-181794aa/ratelimit/tb"
)

//go:embed bucket.lua
var bucketScript string

// lua decides in a script: one round trip, and no other command in between. The client brings the
// time. A refusal writes, too.
func lua(client *goredis.Client, limit tb.Limit) (allow, error) {
	s := newSettings(limit)
	sha, err := client.ScriptLoad(context.Background(), bucketScript).Result()
	ttl := s.ttl.Milliseconds()
	return func(ctx context.Context, key string) (bool, error) {
		now := time.Now().UnixMilli()
		granted, err := client.EvalSha(ctx, sha, []string{key}, now, s.rate, s.capacity, 1, ttl).Int()
		return granted == 1, err
	}, err
}

// multiCmd reads the bucket, decides in the client, and writes the bucket in two commands. Another
// client may decide on the same bucket in between: both take the same tokens.
func multiCmd(client *goredis.Client, limit tb.Limit) (allow, error) {
	s := newSettings(limit)
	return func(ctx context.Context, key string) (bool, error) {
		now := time.Now().UnixMilli()
		before, err := s.read(ctx, client, key, now)
		if err != nil {
			return false, err
		}
		after, granted := s.take(before, now)
		if err := client.HSet(ctx, key, after.fields()...).Err(); err != nil {
			return false, err
		}
		return granted, client.PExpire(ctx, key, s.ttl).Err()
	}, nil
}

// attempts is how often a call of watch tries to decide.
const attempts = 20

var errAttempts = errors.New("other clients changed the bucket in every attempt")

// watch is multiCmd in an optimistic transaction, which fails if another client has changed the
// bucket since it was read. A refusal only renews the time to live, but that is a change, too.
func watch(client *goredis.Client, limit tb.Limit) (allow, error) {
	s := newSettings(limit)
	return func(ctx context.Context, key string) (granted bool, err error) {
		now := time.Now().UnixMilli()
		for range attempts {
			err = client.Watch(ctx, func(tx *goredis.Tx) error {
				granted, err = s.transact(ctx, tx, key, now)
				return err
			}, key)
			if !errors.Is(err, goredis.TxFailedErr) {
				return granted && err == nil, err
			}
		}
		return false, errAttempts
	}, nil
}

// transact decides in a transaction that watches the key.
func (s settings) transact(
	ctx context.Context, tx *goredis.Tx, key string, now int64,
) (granted bool, err error) {
	before, err := s.read(ctx, tx, key, now)
	if err != nil {
		return false, err
	}
	after, granted := s.take(before, now)
	_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		if granted {
			p.HSet(ctx, key, after.fields()...)
		}
		p.PExpire(ctx, key, s.ttl)
		return nil
	})
	return granted, err
}
