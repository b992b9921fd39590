package hostile

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// The soak runs tb-proxy and tb-rls, each with its buckets in memory and in Redis. Clients keep a
// constant load on all four servers, and events disturb them: see soak.events. Each granted request
// is audited. Clients of package outbound stay below the limits, and must not be refused.

var (
	soakTime = flag.Duration("soak", 0, "how long TestSoak runs")
	pause    = flag.Duration("pause", time.Minute, "TestSoak: time from one event to the next")
)

// The servers are flat, grant no key too much, and fail no request without a reason.
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("the servers run for as long as -soak says")
	}
	s := newSoak(t)
	samples := make([][]sample, len(s.servers)) // of the second half, in which no server restarts
	s.underLoad(func() {
		events, pauses, samplings := s.events(), time.Tick(*pause), time.Tick(*pause/6)
		for i := 0; s.now() < *soakTime; {
			firstHalf := s.now() < *soakTime/2
			select {
			case <-samplings:
				for of, sv := range s.servers {
					metrics := sv.metrics(t)
					metrics[medianTime] = sv.medianTime()
					if !firstHalf {
						samples[of] = append(samples[of], sample{s.now(), metrics})
					}
					sv.auditBefore(s.now() - retired)
				}
			case <-pauses:
				for events[i%len(events)].restart && !firstHalf {
					i++
				}
				s.happen(events[i%len(events)])
				i++
			}
		}
	})
	for i, sv := range s.servers {
		for _, m := range measures {
			mean, drift := m.trend(samples[i])
			t.Logf("%s: %s: the mean is %.1f, and the drift %+.1f", sv.name, m.name, mean, drift)
			if !m.isFlat(mean, drift) {
				t.Errorf("%s: %s is not flat", sv.name, m.name)
			}
		}
		if sv.unexpected > 0 {
			t.Errorf("%s: %d errors that no event explains, such as %q", sv.name, sv.unexpected,
				sv.faults)
		}
	}
}

// soak is a run.
type soak struct {
	*testing.T
	begin     time.Time
	dir       string // of the files that change
	redis     *redis
	authority *testkit.Certificate
	servers   []*server
	version   int // of the limits in force
}

// newSoak starts the servers.
func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{
		T: t, dir: t.TempDir(),
		authority: testkit.NewCertificate("authority", nil), begin: time.Now(),
	}
	addresses := freeAddresses(t, 9)
	s.redis = newRedis(t, addresses[8])
	s.writeLimits()
	s.issue()
	target := upstream(t, answer)
	for i, name := range []string{"proxy-memory", "proxy-redis", "rls-memory", "rls-redis"} {
		sv := s.newServer(name, addresses[2*i], addresses[2*i+1], target)
		sv.limits(0, versions[0])
		sv.start(t)
		s.servers = append(s.servers, sv)
	}
	return s
}

// freeAddresses returns addresses that nothing listens on. Their ports are below the ports that the
// system chooses, so that no other process gets one while a server is started again.
func freeAddresses(t *testing.T, n int) (all []string) {
	t.Helper()
	const low, high = 10_000, 32_768
	for port := low + rand.IntN((high-low)/2); len(all) < n; port++ {
		if port == high {
			t.Fatalf("127.0.0.1 has fewer than %d free ports below %d", n, high)
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			all = append(all, address)
		}
	}
	return all
}

// write replaces a file in one step.
func (s *soak) write(name, content string) {
	s.Helper()
	if err := os.Rename(testkit.File(s, "new", content), filepath.Join(s.dir, name)); err != nil {
		s.Fatal(err)
	}
}

// now returns the time since the beginning.
func (s *soak) now() time.Duration { return time.Since(s.begin) }

const (
	rate    = 300 // requests a second to each server
	workers = 8   // the most requests of a server that are under way
)

// underLoad calls a function while clients send requests, stops the servers, and audits them.
func (s *soak) underLoad(f func()) {
	ctx, cancel := context.WithCancel(s.Context())
	var load sync.WaitGroup
	for _, sv := range s.servers {
		for worker := range workers {
			load.Go(func() { s.work(ctx, sv, worker) })
		}
		if sv.newFleet != nil {
			c := sv.newFleet()
			defer c.close()
			for n := range fleet {
				load.Go(func() { s.takeTurns(ctx, sv, c, fmt.Sprint("198.51.100.", n)) })
			}
		}
	}
	f()
	cancel()
	load.Wait()
	for _, sv := range s.servers {
		sv.stop(s.T)
		sv.auditBefore(forever)
		s.Logf("%s: %+v", sv.name, sv.audited)
		if sv.audited.Grants == 0 || sv.audited.OverGrants > 0 {
			s.Errorf("%s: want grants, and none too much", sv.name)
		}
		s.Logf("%s: errors that events explain: %v", sv.name, sv.explained())
	}
}

// work sends the requests of a worker until ctx is done. A request that is under way then goes on.
func (s *soak) work(ctx context.Context, sv *server, worker int) {
	const between, perConnection = time.Second * workers / rate, 200
	rng := rand.New(rand.NewPCG(uint64(worker), 1))
	c := sv.newClient(worker)
	defer c.close()
	pass(ctx, between*time.Duration(worker)/workers) // the workers take turns
	ticker := time.NewTicker(between)
	defer ticker.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.ask(sv, c, newRequest(rng, s.now()))
		if i%perConnection == 0 {
			c.close()
		}
	}
}

// takeTurns sends the requests of a client that package outbound lets wait, until ctx is done.
func (s *soak) takeTurns(ctx context.Context, sv *server, c client, name string) {
	for ; ctx.Err() == nil; pass(ctx, time.Second) {
		s.ask(sv, c, request{client: name, inTurn: true})
	}
}

// pass waits, unless ctx is done first.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// ask sends a request and records its outcome.
func (s *soak) ask(sv *server, c client, r request) {
	timeout := 5 * time.Second
	if r.inTurn {
		timeout = deadline // its turn may come after a pause of some seconds
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	g := grant{sent: s.now()}
	granted, err := c.ask(ctx, r)
	g.received = s.now()
	switch {
	case err != nil:
		sv.failed(r, g, err)
	case granted:
		sv.granted(r, g)
	case r.inTurn:
		sv.failed(r, g, errInTurn)
	}
	if err == nil && !r.inTurn {
		sv.answered(g)
	}
}

// newRequest returns a request of one of four clients that are always above their limit, or of one
// of 300 clients that come and go: 30 clients come in a second, and each stays for ten.
func newRequest(rng *rand.Rand, now time.Duration) request {
	if rng.IntN(2) == 0 {
		return request{client: fmt.Sprint("192.0.2.", rng.IntN(4))}
	}
	n := int(30*now.Seconds()) + rng.IntN(300)
	return request{
		client: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), tenant: fmt.Sprint("tenant", n%4),
	}
}

// sample is what a server says of itself at an instant.
type sample struct {
	at      time.Duration
	metrics map[string]float64
}

// medianTime is the name of the sample that the clients measure.
const medianTime = "median time"

// measure is what must be flat: it may grow by the least amount or by a tenth of its mean.
type measure struct {
	name, metric string
	unit         float64
	least        float64 // in units
}

var measures = []measure{
	{"resident memory, MB", "process_resident_memory_bytes", 1e6, 4},
	{"heap, MB", "go_memstats_next_gc_bytes", 1e6, 4},
	{"descriptors", "process_open_fds", 1, 10},
	{"goroutines", "go_goroutines", 1, 15},
	{"median time of an answer, ms", medianTime, 1, 5}, // on a machine that others use, too
}

// trend returns the mean of the samples, and by how much the line of least squares rises from the
// first to the last. Both are NaN for fewer than two samples.
func (m measure) trend(samples []sample) (mean, drift float64) {
	if len(samples) < 2 {
		return math.NaN(), math.NaN()
	}
	n := float64(len(samples))
	var sumX, sumY, sumXX, sumXY float64
	for _, s := range samples {
		x, y := (s.at - samples[0].at).Seconds(), s.metrics[m.metric]/m.unit
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	return sumY / n, slope * (samples[len(samples)-1].at - samples[0].at).Seconds()
}

// isFlat reports whether a drift is within the bound.
func (m measure) isFlat(mean, drift float64) bool { return drift <= max(m.least, mean/10) }

// The verdict finds a leak of each measure in half an hour, and none in waves.
func TestDriftsAreFound(t *testing.T) {
	// In half an hour: 5 MB, 15 descriptors, 30 goroutines, 15 ms.
	leaks := []float64{3000, 3000, 1. / 120, 1. / 60, 1. / 120}
	for i, m := range measures {
		for leak, flat := range map[float64]bool{0: true, leaks[i]: false} {
			var samples []sample
			for at := 1800 * time.Second; at < time.Hour; at += 10 * time.Second {
				value := 30*m.unit + float64(at/1e10%7)*m.unit/10 + leak*at.Seconds()
				samples = append(samples, sample{at, map[string]float64{m.metric: value}})
			}
			if mean, drift := m.trend(samples); m.isFlat(mean, drift) != flat {
				t.Errorf("%s, a leak of %v: the mean is %v, and the drift %v", m.name, leak, mean, drift)
			}
		}
		if m.isFlat(m.trend(nil)) {
			t.Errorf("%s: no samples are flat", m.name)
		}
	}
}
