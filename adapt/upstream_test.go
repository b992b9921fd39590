package adapt_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// TestUpstreamWithWorkers puts a controller in front of an HTTP server with a pool of workers. Two
// thirds of the workers fail after 20 s and come back after another 30 s. In each phase, from 10 s
// after its begin on, the goodput must be 95 % of the capacity, which no fixed limit exceeds, and
// the p99 must be within 1.5 targets.
func TestUpstreamWithWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, capacity = 15, 500.0
		up := newUpstream(workers, 30*time.Millisecond)
		defer up.close()
		limiter, err := cas.NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c := &clients{up: up, limiter: limiter, random: rand.New(rand.NewPCG(1, 2))}
		c.control, err = adapt.New(limiter, adapt.Config{
			Capacity: 10, Min: 20, Max: 2000, TargetP99: target,
		})
		if err != nil {
			t.Fatal(err)
		}
		type phase struct {
			length time.Duration
			share  float64
		}
		phases := []phase{{20 * time.Second, 1}, {30 * time.Second, 1. / 3}, {30 * time.Second, 1}}
		if testing.Short() {
			phases = []phase{{15 * time.Second, 1. / 3}}
		}
		for i, p := range phases {
			up.setWorkers(int(workers * p.share))
			c.send(1.5*capacity, 10*time.Second)
			c.answers()
			c.send(1.5*capacity, p.length-10*time.Second)
			all := c.answers()
			slices.Sort(all)
			goodput := float64(len(all)) / (p.length - 10*time.Second).Seconds()
			p99 := all[len(all)*99/100]
			if goodput < 0.95*capacity*p.share || p99 > target*3/2 {
				t.Errorf("phase %d: goodput %.1f of %.1f, p99 %v, want 95 %% and at most %v",
					i, goodput, capacity*p.share, p99, target*3/2)
			}
		}
		c.waiting.Wait()
	})
}

// clients send requests to the upstream if the limiter grants them.
type clients struct {
	up      *upstream
	limiter *cas.Bucket
	control *adapt.Controller
	random  *rand.Rand
	waiting sync.WaitGroup

	mu        sync.Mutex
	latencies []time.Duration
}

// send sends requests at the given rate for d. It does not wait for the last answers.
func (c *clients) send(rate float64, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(c.random.ExpFloat64() / rate * float64(time.Second)))
		if !c.limiter.Allow().Allowed {
			c.control.Refused()
			continue
		}
		r, begin := c.control.Begin(), time.Now()
		c.waiting.Go(func() {
			if c.up.get() != nil {
				r.Fail(0)
				return
			}
			r.Done()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.latencies = append(c.latencies, time.Since(begin))
		})
	}
}

// answers returns the latencies of the answers since its last call.
func (c *clients) answers() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.latencies
	c.latencies = nil
	return all
}

// upstream is an HTTP server with a pool of workers, on connections in memory.
type upstream struct {
	server *httptest.Server
	client *http.Client

	mu     sync.Mutex
	change *sync.Cond
	free   int // negative while workers that have failed are still busy
	all    int
}

func newUpstream(workers int, service time.Duration) *upstream {
	u := &upstream{free: workers, all: workers}
	u.change = sync.NewCond(&u.mu)
	random := rand.New(rand.NewPCG(3, 4))
	u.server = httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			u.mu.Lock()
			for u.free <= 0 {
				u.change.Wait()
			}
			u.free--
			d := time.Duration((0.5 + random.Float64()) * float64(service))
			u.mu.Unlock()
			time.Sleep(d)
			u.mu.Lock()
			u.free++
			u.change.Signal()
			u.mu.Unlock()
			w.WriteHeader(http.StatusNoContent)
		}))
	pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	u.server.Listener.Close()
	u.server.Listener = pipes
	u.server.Start()
	u.client = &http.Client{Transport: &http.Transport{
		DialContext:         pipes.dial,
		MaxIdleConnsPerHost: 1000,
	}}
	return u
}

func (u *upstream) setWorkers(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.free += n - u.all
	u.all = n
	u.change.Broadcast()
}

func (u *upstream) get() error {
	resp, err := u.client.Get(u.server.URL)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (u *upstream) close() {
	u.client.CloseIdleConnections()
	u.server.Close()
}

// pipeListener accepts connections in memory, on which a synctest bubble can wait.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
