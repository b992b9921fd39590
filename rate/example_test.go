package rate_test

import (
	"fmt"
	"time"

	// Before: "golang.org/x/time/rate". Nothing else changes.
	"github.com/seed-181794aa/ratelimit/rate"
)

func Example() {
	limiter := rate.NewLimiter(rate.Every(100*time.Millisecond), 2) // ten a second, and bursts of two
	now := time.Now()
	for range 3 {
		fmt.Println(limiter.AllowN(now, 1))
	}
	r := limiter.ReserveN(now, 2)
	fmt.Println(r.OK(), r.DelayFrom(now))
	// Output:
	// true
	// true
	// false
	// true 200ms
}
