package adapt_test

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// A handler passes requests on to an upstream, at a rate that the upstream can take.
func Example() {
	bucket, err := cas.NewBucket(tb.Limit{Capacity: 20, Tokens: 1000, Per: time.Second})
	if err != nil {
		panic(err)
	}
	control, err := adapt.New(bucket, adapt.Config{
		Capacity: 20, Min: 50, Max: 1000, TargetP99: 200 * time.Millisecond,
	})
	if err != nil {
		panic(err)
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		if !bucket.Allow().Allowed {
			control.Refused()
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		request := control.Begin()
		resp, err := http.Get("http://upstream" + r.URL.Path)
		switch {
		case r.Context().Err() != nil:
			request.Cancel()
		case err != nil:
			request.Fail(0)
		case resp.StatusCode == http.StatusServiceUnavailable:
			seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			request.Fail(time.Duration(seconds) * time.Second)
		default:
			request.Done()
		}
		// Copy the response.
	}
	_ = http.HandlerFunc(handler)
	fmt.Println(control.Rate())
	// Output: 1000
}

// Tier 1 follows what the downstream answers, and tier 0 keeps its limit.
func ExampleLimiterFunc() {
	reads := tb.Limit{Capacity: 100, Tokens: 1000, Per: time.Second}
	writes := tb.Limit{Capacity: 20, Tokens: 100, Per: time.Second}
	limiter, err := cas.NewTiered[string]([]tb.Limit{reads, writes})
	if err != nil {
		panic(err)
	}
	control, err := adapt.New(
		adapt.LimiterFunc(func(l tb.Limit) error { return limiter.SetTier(1, l) }),
		adapt.Config{Capacity: 20, Min: 10, Max: 100, TargetP99: 200 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	s := control.Stats()
	fmt.Println(s.Rate, "a second; the latency does not fall with the rate:", s.ExcusedTail)
	// Output: 100 a second; the latency does not fall with the rate: false
}
