package outbound

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// vendor is a server whose limiter is httplimit. The key of a request is its field Key.
type vendor struct {
	latency time.Duration              // each way, at most
	rewrite func(n int, h http.Header) // changes the header of an answer, if not nil

	mu       sync.Mutex
	limiter  *httplimit.Limiter
	answered int
	granted  []float64 // since each start, less the burst
	refused  int
	early    int                     // requests within a pause, after their process was told
	told     map[string][2]time.Time // by process: when it was told, and the end of the pause
}

func (v *vendor) start(capacity int, rate float64) {
	rule := policy.Rule{Name: "vendor", Keys: []string{"header:key"},
		Limit: perSecond("", capacity, rate).Limit}
	l, err := httplimit.New(policy.Rules(rule), httplimit.WithFields(httplimit.Fields{Policy: true}))
	if err != nil {
		panic(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.limiter, v.granted = l, append(v.granted, -float64(capacity))
}

func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(rand.N(v.latency + 1))
	response := v.serve(r, r.Header.Get("Process"))
	time.Sleep(rand.N(v.latency + 1))
	return response, nil
}

func (v *vendor) serve(r *http.Request, process string) *http.Response {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, pause := time.Now(), v.told[process]
	if now.After(pause[0]) && now.Before(pause[1]) {
		v.early++
	}
	w := httptest.NewRecorder()
	v.limiter.Middleware(http.NotFoundHandler()).ServeHTTP(w, r)
	response := w.Result()
	if response.StatusCode == http.StatusNotFound {
		v.granted[len(v.granted)-1]++
	} else {
		v.refused++
	}
	if v.answered++; v.rewrite != nil {
		v.rewrite(v.answered, response.Header)
	}
	if s, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		v.told[process] = [2]time.Time{now, now.Add(time.Duration(s) * time.Second)}
	}
	return response
}

// shared is a store for several Transports, as Redis is: the level of a charge is the one of its
// last Take.
type shared struct {
	httplimit.Store
	made   map[string]tb.StoreLimiter
	before func(call, key string) error // is called before charge, take and hold
}

type sharedLimiter struct {
	limiter
	store *shared
}

type sharedCharge struct {
	tb.StoreCharge
	level *tb.Level
}

func newShared() *shared {
	return &shared{Store: httplimit.Memory(), made: make(map[string]tb.StoreLimiter),
		before: func(string, string) error { return nil }}
}

func (s *shared) Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error) {
	all, err := s.Store.Limiters(rule, limits)
	if s.made[rule] == nil {
		s.made[rule] = sharedLimiter{all[0].(limiter), s}
	}
	return []tb.StoreLimiter{s.made[rule]}, err
}

func (s *shared) TakeAll(
	ctx context.Context, now time.Time, all []tb.Charge, buf []tb.Decision,
) ([]tb.Decision, bool, error) {
	decisions, ok, err := s.Store.TakeAll(context.WithoutCancel(ctx), now, all, buf)
	err = cmp.Or(err, s.before("take", ""), ctx.Err()) // on the way back
	return decisions, ok && err == nil, err
}

func (l sharedLimiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	if err := l.store.before("charge", key); err != nil {
		return nil, err
	}
	c, err := l.limiter.Charge(key, cost)
	return &sharedCharge{StoreCharge: c}, err
}

func (l sharedLimiter) Hold(ctx context.Context, key string, until time.Time) error {
	if err := l.store.before("hold", key); err != nil {
		return err
	}
	return l.limiter.Hold(ctx, key, until)
}

func (c *sharedCharge) Take(t time.Time) (tb.Decision, error) {
	d, err := c.StoreCharge.Take(t)
	level, _ := c.StoreCharge.Level(t)
	c.level = &level
	return d, err
}

func (c *sharedCharge) Level(t time.Time) (tb.Level, error) {
	if c.level == nil {
		return c.StoreCharge.Level(t)
	}
	return *c.level, nil
}

// load sends requests of 64 goroutines in processes with one store, until the time is over. Each
// sends its next one when the last one is answered. load returns the number of pauses.
func load(t *testing.T, v *vendor, processes int, d time.Duration, opts []Option) (held int) {
	if processes > 1 {
		opts = append(opts, WithStore(newShared()))
	}
	clients := make([]*Transport, processes)
	for i := range clients {
		clients[i] = New(v, opts...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for err := error(nil); err == nil; {
				r := request(ctx, "a")
				r.Header.Set("Process", strconv.Itoa(i%processes))
				_, err = clients[i%processes].RoundTrip(r)
			}
		})
	}
	all.Wait()
	refused := 0
	for _, c := range clients {
		refused += int(c.Stats().Rules[0].Refused)
		held += int(c.Stats().Rules[0].Held)
		for _, k := range c.rules[0].keys {
			if len(k.line) > 0 || k.users.Load() > 0 {
				t.Errorf("%d attempts still wait, %d have the key", len(k.line), k.users.Load())
			}
		}
	}
	isEarly := v.early > 0 && v.latency == 0 // or else some are on their way
	if refused != v.refused || isEarly {
		t.Errorf("%d refused, %d counted, %d early", v.refused, refused, v.early)
	}
	return held
}

// Vendors whose limit is 10 and 5 a second, if a case does not say another. What a vendor says
// makes a client slower, and no request fails.
func TestVendors(t *testing.T) {
	const d, first = 300 * time.Millisecond, 64 // requests before the first answer
	only := func(_ int, h http.Header) {        // Retry-After, which is longer than need be
		maps.DeleteFunc(h, func(name string, _ []string) bool { return name != "Retry-After" })
	}
	lies := []string{"", "0", "1", "-1", "10", "1e308", "1e9", "2000-01-01T00:02:00Z", "1h", "NaN"}
	lie := func(n int, h http.Header) {
		h.Set("Ratelimit-Remaining", lies[n%3])
		h.Set("Ratelimit-Reset", lies[n/3%len(lies)])
		h.Set("Ratelimit", fmt.Sprintf(`"vendor";r=%s;t=%s`, lies[n/2%3], lies[n/5%len(lies)]))
	}
	const none, some, oncePerPause = 0, 1, 2 // refused
	for name, c := range map[string]struct {
		capacity  int           // 10 if it is 0
		rate      float64       // 5 if it is 0
		then      []float64     // the rates after it, in equal parts of the time
		latency   time.Duration // each way, at most
		rewrite   func(int, http.Header)
		time      time.Duration // 10 minutes if it is 0
		processes int           // 1 if it is 0
		opts      []Option      // the limit of the vendor if it is nil
		refused   int
		used      float64 // of the rate in each part, at least; 0.95 if it is 0
	}{
		"agrees":                      {},
		"agrees with three":           {processes: 3},
		"is slow, with three":         {capacity: 1, rate: 0.3, processes: 3},
		"has less, with three":        {opts: []Option{PerHost(20, 10)}, refused: some, processes: 3},
		"lowers, raises and restarts": {then: []float64{1, 5, 5}, refused: some},
		"lies": {rewrite: lie, time: 24 * time.Hour, processes: 3, used: 1.0 / 60 / 5,
			opts: []Option{PerHost(10, 5), WithMaxPause(time.Minute)}},
		"is far away":                {latency: d, time: time.Hour, refused: some},
		"is far away, with a margin": {latency: d, opts: []Option{PerHost(10, 5), Margin(d)}},
		"is learned":                 {opts: []Option{}, refused: oncePerPause},
		"is learned by refusals": {opts: []Option{}, rewrite: only, refused: oncePerPause,
			used: 0.7},
	} {
		bubble(name, func(t *testing.T) {
			c.capacity, c.time = cmp.Or(c.capacity, 10), cmp.Or(c.time, 10*time.Minute)
			rates := append([]float64{cmp.Or(c.rate, 5)}, c.then...)
			if c.opts == nil {
				c.opts = []Option{PerHost(c.capacity, rates[0])}
			}
			v := &vendor{latency: c.latency, rewrite: c.rewrite, told: map[string][2]time.Time{}}
			v.start(c.capacity, rates[0])
			part := c.time / time.Duration(len(rates))
			for i, rate := range rates[1:] {
				time.AfterFunc(time.Duration(i+1)*part, func() { v.start(c.capacity, rate) })
			}
			held := load(t, v, max(c.processes, 1), c.time, c.opts)
			if c.refused != oncePerPause && (v.refused > 0) != (c.refused == some) ||
				c.refused == oncePerPause && v.refused-first > held {
				t.Errorf("%d refused in %d pauses", v.refused, held)
			}
			for i, rate := range rates {
				if used := v.granted[i] / rate / part.Seconds(); used < cmp.Or(c.used, 0.95) {
					t.Errorf("%v of the rate used in part %d", used, i)
				}
			}
		})(t)
	}
}

// Pauses and the attempts that they move meet at any point, in real time.
func TestPausesOfManyAttempts(t *testing.T) {
	const goroutines, requests = 16, 150
	answers := []string{"429\nRetry-After-Ms: 0.05", "200"}
	s := newScript(slices.Repeat(answers, goroutines*requests/2)...)
	client := New(s, Rules(perSecond("all", 1, 50_000), perSecond("each", 1, 50_000)))
	client.rules[0].Key = func(*http.Request) string { return "all" }
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range requests {
				if _, err := client.RoundTrip(request(t.Context(), strconv.Itoa(i%3))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := client.Stats(); got.Sent != goroutines*requests || got.Rules[0].Held == 0 {
		t.Errorf("%+v", got)
	}
}
