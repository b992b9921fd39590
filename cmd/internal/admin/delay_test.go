package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The page shows the delays of a rule, a bucket that has lent tokens as empty, and each second.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Server
		limiter, _ := httplimit.New(httplimit.Rules(httplimit.Rule{
			Name: "r", Limit: tb.Limit{Capacity: 2, Tokens: 2, Per: time.Second},
			OnLimit: httplimit.Delay, MaxDelay: time.Second,
		}), httplimit.WithHooks(httplimit.Hooks{
			Refused: func(r *http.Request, e httplimit.Event) { s.Refused(r, e) },
		}))
		s = New(Config{Limiter: limiter, Metrics: http.NotFoundHandler(), FormatKey: upper})
		go s.Run(t.Context())
		limited := limiter.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				limited.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			})
		}
		synctest.Wait()
		shown := func() (v snapshot) {
			w := httptest.NewRecorder()
			s.serveSnapshot(w, nil)
			if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		v := shown()
		if r := v.Rules[0]; r.Waiting != 2 || r.Delayed != 0 || r.MeanDelay != 0 || r.Refused != 1 {
			t.Errorf("%+v", r)
		}
		if want := (bucketView{"r", "ALL REQUESTS", 1, 0, 2, 2, 0}); len(v.Buckets) != 1 ||
			v.Buckets[0] != want {
			t.Errorf("%+v, want %+v", v.Buckets, want)
		}
		group.Wait()
		if r := shown().Rules[0]; r.Waiting != 0 || r.Delayed != 2 || r.MeanDelay != 0.75 {
			t.Errorf("%+v", r)
		}
		time.Sleep(1500 * time.Millisecond)
		refused := shown().Rules[0].RefusedPerSecond
		if got := refused[historySeconds-2:]; got[0] != 1 || got[1] != 0 {
			t.Error(got)
		}
	})
}
