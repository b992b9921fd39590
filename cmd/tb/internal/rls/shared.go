package rls

import (
	"net/url"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// Shared makes the limiters of rules whose buckets are in Redis.
type Shared struct {
	client  rueidis.Client
	timeout time.Duration
	policy  redis.Policy // if Redis does not decide
	errors  bool         // or the request has an error
}

// NewShared returns a Shared. failure is what happens to a request that Redis does not decide:
// "allow", "refuse" or "error".
func NewShared(client rueidis.Client, timeout time.Duration, failure string) *Shared {
	s := &Shared{
		client: client, timeout: timeout, policy: redis.Refuse, errors: failure == "error",
	}
	if failure == "allow" {
		s.policy = redis.Allow
	}
	return s
}

// newLimiter returns the limiter of a rule. All processes with the same descriptors share its
// buckets, also if the limits differ during a reload.
func (s *Shared) newLimiter(r *config.Rule) (*redis.Limiter, error) {
	return redis.New(s.client, r.Limit, redis.WithPolicy(s.policy), redis.WithTimeout(s.timeout),
		redis.WithPrefix("tb:rls:"+url.QueryEscape(r.Domain)+":"+url.QueryEscape(r.Path)+":"))
}
