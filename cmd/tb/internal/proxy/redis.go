package proxy

import (
	"context"

	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// dial connects to Redis, if there is a flag for it. The proxy also starts without the server.
func (r *runner) dial(context.Context) (err error) {
	if !r.Redis.IsSet() {
		return nil
	}
	if r.redis, err = r.Redis.Dial(); r.redis == nil {
		return err
	}
	if err != nil {
		r.Log.Warn("Redis does not answer yet", "error", err)
	}
	r.store, err = redis.NewStore(r.redis, redis.WithTimeout(r.RedisTimeout))
	return err
}
