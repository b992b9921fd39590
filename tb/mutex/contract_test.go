package mutex_test

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

func TestContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := mutex.New[string](limit, opts...)
		return l, err
	})
}
