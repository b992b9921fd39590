package proxy

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// adapting is a policy that adapts its rate to the upstream.
const adapting = `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 500, "burst": 10,
	"adaptive": {"min": 20, "max": 2000, "target_p99": "200ms"}}}`

func withAdaptive(t *testing.T) func(*Config) {
	return func(c *Config) {
		var err error
		if c.Policy, err = cli.ParsePolicy([]byte(adapting)); err != nil {
			t.Fatal(err)
		}
	}
}

// pool is the handler of an upstream with a number of workers.
type pool struct {
	mu     sync.Mutex
	change *sync.Cond
	random *rand.Rand
	all    int
	busy   int
}

func (u *pool) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	for u.busy >= u.all {
		u.change.Wait()
	}
	u.busy++
	service := time.Duration((0.5 + u.random.Float64()) * 30e6)
	u.mu.Unlock()
	time.Sleep(service)
	u.mu.Lock()
	u.busy--
	u.change.Signal()
	u.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (u *pool) setWorkers(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = n
	u.change.Broadcast()
}

// Two thirds of the workers of the upstream fail and come back. From 10 s after each change on, the
// goodput is 95 % of the capacity, which no fixed limit exceeds, and the p99 is within 1.5 targets.
func TestAdaptiveRateBeforeAnUpstreamWithWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends 100,000 requests")
	}
	synctest.Test(t, func(t *testing.T) {
		const workers, capacity, target = 15, 500.0, 200 * time.Millisecond
		up := &pool{all: workers, random: rand.New(rand.NewPCG(3, 4))}
		up.change = sync.NewCond(&up.mu)
		back := newPipes()
		server := &http.Server{Handler: up}
		go server.Serve(back)
		defer server.Close()
		m := inMemory(t, 1, withAdaptive(t))
		m.upstream.Transport.(*http.Transport).DialContext = back.dial
		m.Client.Transport.(*http.Transport).MaxIdleConnsPerHost = 1000

		var mu sync.Mutex
		var answers []time.Duration
		arrivals := rand.New(rand.NewPCG(1, 2))
		send := func(d time.Duration) []time.Duration {
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(time.Duration(arrivals.ExpFloat64() / (1.5 * capacity) * 1e9))
				m.pending.Go(func() {
					start := time.Now()
					resp, err := m.Get("http://proxy/")
					if err != nil {
						t.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode == http.StatusNoContent {
						mu.Lock()
						defer mu.Unlock()
						answers = append(answers, time.Since(start))
					}
				})
			}
			mu.Lock()
			defer mu.Unlock()
			all := answers
			answers = nil
			return all
		}
		for i, share := range []float64{1, 1. / 3, 1} {
			up.setWorkers(int(workers * share))
			send(10 * time.Second)
			all := send(15 * time.Second)
			slices.Sort(all)
			goodput, p99 := float64(len(all))/15, all[len(all)*99/100]
			if goodput < 0.95*capacity*share || p99 > target*3/2 {
				t.Errorf("phase %d: goodput %.1f of %.1f, p99 %v, want 95 %% and at most %v",
					i, goodput, capacity*share, p99, target*3/2)
			}
		}
		m.pending.Wait()
	})
}

// Without a connection to the upstream, the rate falls.
func TestAdaptiveRateFallsWithoutUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, 1, withAdaptive(t))
		down := newPipes()
		down.Close()
		m.upstream.Transport.(*http.Transport).DialContext = func(
			ctx context.Context, network, address string,
		) (net.Conn, error) {
			_, err := down.dial(ctx, network, address)
			return nil, &net.OpError{Op: "dial", Err: errors.Join(err)}
		}
		for range 400 {
			time.Sleep(10 * time.Millisecond)
			m.send(t.Context(), "/")
			m.pending.Wait()
		}
		if l := m.Limiter.Stats()[0].Limit; float64(l.Tokens)/l.Per.Seconds() >= 100 {
			t.Errorf("%v", l)
		}
	})
}
