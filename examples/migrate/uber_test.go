package migrate

import (
	"context"
	"time"

	uber "go.uber.org/ratelimit"

	"github.com/seed-181794aa/ratelimit"
)

var _ = []any{uberTable, uberHere}

func uberTable() {
	rl := uber.New(100)
	rl.Take()
	{
		rl := uber.New(100, uber.Per(time.Minute))
		rl.Take()
	}
	{
		rl := uber.New(100, uber.WithoutSlack)
		rl.Take()
	}
}

func uberHere(ctx context.Context, bucket *ratelimit.Bucket) []ratelimit.Limit {
	bucket.Wait(ctx, 1)
	limits := []ratelimit.Limit{}
	{
		limit := ratelimit.Limit{Capacity: 11, Tokens: 100, Per: time.Second}
		limits = append(limits, limit)
	}
	{
		limit := ratelimit.Limit{Capacity: 11, Tokens: 100, Per: time.Minute}
		limits = append(limits, limit)
	}
	limit := ratelimit.Limit{Capacity: 1, Tokens: 100, Per: time.Second}
	return append(limits, limit)
}
