package tbtest_test

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

func TestContract(t *testing.T) {
	tbtest.RunExcept(t, newLimiter, map[string]string{
		"ThirdsAddUp": "a bucket that fills between two nanoseconds loses the rest",
	})
}
