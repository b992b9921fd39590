package redis

import (
	"math"
	"net"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

var ample = tb.Limit{Capacity: 1 << 20, Tokens: 1, Per: 24 * time.Hour}

var byDefault = WithTimeout(50 * time.Millisecond)

// loadKeys is the number of keys of a load: "0", "1" and so on.
const loadKeys = 8

type results struct {
	server, policy [loadKeys]int64     // tokens granted, by key
	decided        [ByPolicy + 1]int64 // calls, by what decided
	slowest        time.Duration
	late           time.Duration // of a timer that waits beside the load for the timeout
}

func sum(n [loadKeys]int64) (all int64) {
	for _, x := range n {
		all += x
	}
	return all
}

// run makes up to 10,000 calls a second from several goroutines, until the condition holds. They
// have all returned then. enough gets the number of calls and the time so far.
func run(
	t *testing.T, l *Limiter, callers int, enough func(calls int64, d time.Duration) bool,
) results {
	t.Helper()
	var (
		calls atomic.Int64
		mu    sync.Mutex
		all   results
		wg    sync.WaitGroup
	)
	start := time.Now()
	done, late := make(chan struct{}), make(chan time.Duration)
	go func() { late <- lateness(l.timeout, done) }()
	for i := range callers {
		wg.Go(func() {
			pace := time.NewTicker(time.Duration(callers) * 100 * time.Microsecond)
			defer pace.Stop()
			for j := i; !enough(calls.Load(), time.Since(start)); j++ {
				key := j % loadKeys
				begin := time.Now()
				o, err := l.Decide(t.Context(), strconv.Itoa(key), 1)
				took := time.Since(begin)
				if err != nil && l.policy != Fail {
					t.Error(err)
					return
				} else if err != nil {
					o.By = ByPolicy
				}
				calls.Add(1)
				mu.Lock()
				all.slowest = max(all.slowest, took)
				all.decided[o.By]++
				if o.Allowed && o.By == ByServer {
					all.server[key]++
				} else if o.Allowed {
					all.policy[key]++
				}
				mu.Unlock()
				<-pace.C
			}
		})
	}
	wg.Wait()
	close(done)
	all.late = <-late
	return all
}

// lateness returns by how much a timer of d is late, at most, until done is closed. It shows how
// busy the machine is.
func lateness(d time.Duration, done <-chan struct{}) (most time.Duration) {
	for {
		start := time.Now()
		select {
		case <-time.After(d):
			most = max(most, time.Since(start)-d)
		case <-done:
			return most
		}
	}
}

func calls(n int64) func(int64, time.Duration) bool {
	return func(calls int64, _ time.Duration) bool { return calls >= n }
}

func lasting(d time.Duration) func(int64, time.Duration) bool {
	return func(_ int64, so time.Duration) bool { return so >= d }
}

// recovered makes calls until the breaker is closed, and returns how long that took.
func recovered(t *testing.T, l *Limiter, callers int) (results, time.Duration) {
	t.Helper()
	start := time.Now()
	all := run(t, l, callers, func(_ int64, so time.Duration) bool {
		return l.Stats().Breaker == BreakerClosed || so > patient/2
	})
	took := time.Since(start)
	if s := l.Stats(); s.Breaker != BreakerClosed {
		t.Fatalf("the breaker is %v after %v: %+v", s.Breaker, took, s)
	}
	return all, took
}

// wantPrompt fails the test if a call did not return at its timeout. The margins are for a machine
// that runs other programs.
func wantPrompt(t *testing.T, l *Limiter, all results) {
	t.Helper()
	t.Logf("%d calls decided by the server, %d by the policy; slowest %v, with a timeout of %v; "+
		"a timer alone was late by %v", all.decided[ByServer], all.decided[ByPolicy],
		all.slowest.Round(time.Millisecond), l.timeout, all.late.Round(time.Millisecond))
	if all.slowest > l.timeout+2*all.late+time.Second {
		t.Errorf("slowest call: %v", all.slowest)
	}
}

// taken returns the tokens that the buckets of the load lack, when no command is under way.
func taken(t *testing.T, c rueidis.Client, l *Limiter) (n int64) {
	t.Helper()
	l.Close()
	same := Option{set: func(s *settings) {
		*s = l.settings
		s.timeout = patient
	}}
	reader := newLimiter(t, c, ample, same)
	reader.layout.Store(l.layout.Load())
	for i := range loadKeys {
		v, err := reader.Level(t.Context(), strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		n += int64(math.Ceil(float64(l.layout.Load().capacity/l.layout.Load().scale) - v.Tokens))
	}
	return n
}

// dialed returns a client of the address with the options of the package's documentation. It does
// not need a server yet.
func dialed(t *testing.T, addr string) rueidis.Client {
	t.Helper()
	c, _ := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true,
		Dialer:           net.Dialer{Timeout: 500 * time.Millisecond, KeepAlive: 250 * time.Millisecond},
		ConnWriteTimeout: 250 * time.Millisecond,
	})
	t.Cleanup(c.Close)
	return c
}

func connections(t *testing.T, c rueidis.Client) int {
	t.Helper()
	return int(figure(t, c, "stats", "total_connections_received"))
}

// figure returns a number of a section of INFO, or 0 if the section lacks the field.
func figure(t testing.TB, c rueidis.Client, section, field string) float64 {
	t.Helper()
	number := regexp.MustCompile("(?m)^" + field + "[:=]([0-9.]+)")
	if m := number.FindStringSubmatch(text(t, c, "INFO", section)); m != nil {
		x, _ := strconv.ParseFloat(m[1], 64) // no error: the pattern
		return x
	}
	return 0
}

// restart starts a server without data at the address of another one, which must have ended.
func restart(t *testing.T, addr string, args ...string) {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	redistest.Start(t, append([]string{"--port", port}, args...)...)
}
