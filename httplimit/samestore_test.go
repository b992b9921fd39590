package httplimit

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// everything is a policy with all that a rule can have. The limits depend on n.
func everything(n int) string {
	return sprintf(`{"rules": [
		{"name": "key", "limit_keys": ["header:k"], "algorithm_config": {
			"rps": %g, "burst": 4, "cost_source": "header:w", "max_cost": 9, "tiers": {
				"by": "header:plan", "limits": {
					"gold": {"rps": 3, "burst": %d}, "lead": {"rps": 0.1, "burst": 1}%s}}}},
		{"name": "all", "limit_keys": [], "on_limit": "delay", "max_delay": "2s",
			"algorithm_config": {"rps": 1.3, "burst": %d, "cost_source": "response:header:used",
				"default_cost": 1.5, "max_cost": 5}},
		{"name": "net", "limit_keys": ["ip:address/64,/56"],
			"algorithm_config": {"rps": 0.4, "burst": 3}},
		{"name": "trial", "limit_keys": ["header:k"], "mode": "shadow", "on_limit": "delay",
			"max_delay": "1s", "algorithm_config": {"rps": 0.7, "burst": 2}}]}`,
		0.3+float64(n)/10, 5+n, []string{"", `, "tin": {"rps": 1, "burst": 2}`}[n%2], 2+n)
}

// transcript returns what happens to random requests, some of which wait, disconnect or meet
// another policy.
func transcript(t *testing.T, option func(*testing.T) Option) (lines []string) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		note := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, sprintf("%013d %s", time.Since(start), text))
		}
		l := mustNew(t, everything(0), steady(), option(t), WithContext(),
			WithFields(Fields{Policy: true, XRateLimit: true}),
			WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) {
				e.Writer = nil
				note(sprintf("%+v", e))
			}}))
		handler := l.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d, _ := FromContext(r.Context())
			// Two requests may wait for one instant. They are settled after both have begun.
			time.Sleep(time.Millisecond + time.Duration(len(r.Header.Get("I"))))
			w.Header().Set("Used", r.Header.Get("Used"))
			w.Write([]byte(sprintf("%+v", d)))
		}))
		rnd := rand.New(rand.NewPCG(5, 6))
		pick := func(texts ...string) string { return texts[rnd.IntN(len(texts))] }
		var pending sync.WaitGroup
		for i := range 600 {
			time.Sleep(time.Duration(rnd.Int64N(int64(900 * time.Millisecond))))
			if i%20 == 19 {
				pending.Wait() // a limiter in memory gives nothing back that was taken under another limit
				if err := l.SetPolicy(mustParse(t, everything(i/20%4))); err != nil {
					t.Fatal(err)
				}
			}
			r := request("K: "+pick("a", "b"), "W: "+pick("0.25", "1", "2.5", "5", "1e-9", "x", "40"),
				"Used: "+pick("0", "0.5", "3", "5", "?"), "Plan: "+pick("gold", "lead", "tin", ""),
				"I: "+strings.Repeat("i", i))
			r.RemoteAddr = pick("[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "192.0.2.1:1")
			ctx, cancel := context.WithTimeout(r.Context(),
				time.Duration(1+rnd.Int64N(4))*700*time.Millisecond)
			note(sprintf("%d %+v", i, l.Explain(r)))
			pending.Go(func() {
				defer cancel()
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r.WithContext(ctx))
				note(sprintf("%d %d %v %s", i, w.Code, w.Header(), w.Body))
			})
			synctest.Wait()
		}
		pending.Wait()
		slices.Sort(lines) // of one instant
		for _, st := range l.Stats() {
			st.Table, st.Limiter = tb.Stats{}, nil
			note(sprintf("%+v", st))
			if st.Granted+st.ShadowGranted < 50 || st.Label[0] != 'n' && !st.Shadow && st.Refused < 50 {
				t.Errorf("too little happens: %+v", st)
			}
		}
	})
	return lines
}

// A policy with everything gives the same answers with buckets in memory and in a store.
func TestAStoreAnswersAsMemory(t *testing.T) {
	want := transcript(t, func(*testing.T) Option { return WithTimeout(time.Second) })
	got := transcript(t, func(t *testing.T) Option { return WithStore(referenceStore{t: t}) })
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("%s\nwant %s", got[i], want[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}
