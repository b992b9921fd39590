package migrate

import (
	"context"
	"time"

	uber "go.uber.org/ratelimit"

	"github.com/seed-181794aa/ratelimit"
)

var _ = uberTable

func uberTable(ctx context.Context, rl uber.Limiter, bucket *ratelimit.Bucket) []any {
	rl.Take()
	bucket.Wait(ctx, 1)
	return []any{
		uber.New(100), ratelimit.Limit{Capacity: 11, Tokens: 100, Per: time.Second},
		uber.New(100, uber.Per(time.Minute)),
		ratelimit.Limit{Capacity: 11, Tokens: 100, Per: time.Minute},
		uber.New(100, uber.WithoutSlack),
		ratelimit.Limit{Capacity: 1, Tokens: 100, Per: time.Second},
	}
}
