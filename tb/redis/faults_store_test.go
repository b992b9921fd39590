package redis

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// decide makes a call for a token, and fails the test unless the given decider decided it.
func decide(t *testing.T, l *Limiter, key string, by Decider) Outcome {
	t.Helper()
	o, err := l.Decide(t.Context(), key, 1)
	if err != nil || o.By != by {
		t.Errorf("key %s: %+v, %v, want a decision of the %v", key, o, err, by)
	}
	return o
}

// A full server that evicts nothing decides refusals, which write nothing. The policy decides the
// other calls, and the breaker stays closed.
func TestFullServerWithoutEviction(t *testing.T) {
	s := redistest.Start(t)
	operator := dial(t, s)
	l := newLimiter(t, dial(t, s), tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
		WithMaxDenial(0))
	decide(t, l, "drained", ByServer)
	do(t, operator, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	do(t, operator, "CONFIG", "SET", "maxmemory", "1")
	for i := range 2 * window {
		if o := decide(t, l, "drained", ByServer); o.Allowed {
			t.Errorf("a drained bucket: %+v", o)
		}
		if o := decide(t, l, strconv.Itoa(i), ByPolicy); o.Failure.Cause != CauseOutOfMemory {
			t.Errorf("a new bucket: %+v", o)
		}
	}
	do(t, operator, "CONFIG", "SET", "maxmemory", "0")
	if o := decide(t, l, "0", ByServer); !o.Allowed {
		t.Errorf("after the memory was freed: %+v", o)
	}
}

// A full server with volatile-ttl evicts the buckets that are full first. So the buckets that
// clients have drained stay.
func TestFullServerEvictsTheFullestBuckets(t *testing.T) {
	const drained, others = 100, 20_000
	s := redistest.Start(t, "--maxmemory-policy", "volatile-ttl")
	operator := dial(t, s)
	l := newLimiter(t, dial(t, s), slow, WithMaxDenial(0))
	charge := func(prefix string, n, tokens int) {
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				for j := i; j < n; j += 32 {
					d, err := l.AllowN(t.Context(), prefix+strconv.Itoa(j), float64(tokens))
					if err != nil || !d.Allowed {
						t.Errorf("key %s%d: %+v, %v", prefix, j, d, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	charge("drained", drained, 10)
	charge("", others/4, 1)
	used := info(t, operator, "memory", "used_memory:")
	do(t, operator, "CONFIG", "SET", "maxmemory", strconv.Itoa(used))
	charge("more", others, 1)
	forgiven := 0
	for i := range drained {
		if decide(t, l, "drained"+strconv.Itoa(i), ByServer).Allowed {
			forgiven++
		}
	}
	evicted := info(t, operator, "stats", "evicted_keys:")
	t.Logf("%d buckets evicted, %d of %d drained ones", evicted, forgiven, drained)
	if evicted < others/2 || forgiven > 0 {
		t.Error("want many evicted, and no drained one")
	}
	if n := len(l.Stats().Failed); n > 0 {
		t.Errorf("Stats: %+v", l.Stats())
	}
}

// A replica takes over. What it had not received is granted once more, and no more than that.
func TestFailoverToAReplicaThatLags(t *testing.T) {
	master, replica := redistest.Start(t, "--repl-diskless-sync-delay", "0"), redistest.Start(t)
	link, way := startProxy(t, master.Addr), startProxy(t, master.Addr)
	operator, second := dial(t, master), dial(t, replica)
	l := newLimiter(t, dialOption(t, rueidis.ClientOption{
		InitAddress: []string{way.addr}, DisableCache: true, ForceSingleClient: true,
		ConnWriteTimeout: patient,
	}), slow, WithMaxDenial(0))
	host, port, _ := strings.Cut(link.addr, ":")
	do(t, second, "REPLICAOF", host, port)
	const received, lost = 4, 3
	for range received {
		decide(t, l, "a", ByServer)
	}
	get := func(c rueidis.Client) string { // no error, because a replica refuses it while it loads
		v, _ := c.Do(t.Context(), c.B().Get().Key("tb:{a}").Build()).ToString()
		return v
	}
	for want := get(operator); get(second) != want; {
		runtime.Gosched()
	}
	link.set(drop)
	for range lost {
		decide(t, l, "a", ByServer)
	}
	if err := master.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	decide(t, l, "a", ByPolicy)
	do(t, second, "REPLICAOF", "NO", "ONE")
	way.move(replica.Addr)
	granted := 0
	for l.Stats().Refused < 10 { // some calls still find the connection of the master
		if o, err := l.Decide(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		} else if o.Allowed {
			granted++
		}
	}
	if granted != 10-received {
		t.Errorf("the replica granted %d tokens of 10, of which it had %d and had missed %d",
			granted, received, lost)
	}
	if s := l.Stats(); s.Loaded == 0 {
		t.Errorf("the replica has not got the script: %+v", s)
	}
}

// The address moves to a new master, and the old one stays as its replica and keeps the
// connections. A refused write closes one of them, and the next connection finds the master.
func TestDemotedMaster(t *testing.T) {
	for _, multiplex := range []int{-1, 2} { // one connection, and four
		old, master := redistest.Start(t), redistest.Start(t)
		way := startProxy(t, old.Addr)
		l := newLimiter(t, dialOption(t, rueidis.ClientOption{
			InitAddress: []string{way.addr}, DisableCache: true, ForceSingleClient: true,
			PipelineMultiplex: multiplex,
		}), ample, WithMaxDenial(0))
		run(t, l, 64, calls(500))
		host, port, _ := strings.Cut(master.Addr, ":")
		do(t, dial(t, old), "REPLICAOF", host, port)
		way.move(master.Addr)
		if multiplex < 0 {
			if o := decide(t, l, "a", ByPolicy); o.Failure != nil && o.Failure.Cause != CauseReadOnly {
				t.Errorf("the old master: %+v", o)
			}
			// A call may still be sent by the connection that closes, before the call that finds the master.
			o, err := l.Decide(t.Context(), "a", 1)
			if o.Failure != nil && o.Failure.Cause == CauseUnreachable {
				o, err = l.Decide(t.Context(), "a", 1)
			}
			if err != nil || o.By != ByServer {
				t.Errorf("after the old master: %+v, %v", o, err)
			}
			continue
		}
		for inARow := 0; inARow < 100; inARow++ { // by any of the connections
			if o, err := l.Decide(t.Context(), "a", 1); err != nil {
				t.Fatal(err)
			} else if o.By != ByServer {
				inARow = 0
			}
		}
	}
}

// After a change of the password, the calls do not all try to connect.
func TestChangedPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	operator := dial(t, s)
	do(t, operator, "ACL", "SETUSER", "limiter", "on", ">old", "~tb:*", "+@all")
	o := rueidis.ClientOption{
		InitAddress: []string{s.Addr}, DisableCache: true, ForceSingleClient: true,
		Username: "limiter", Password: "old",
	}
	l := newLimiter(t, dialOption(t, o), ample, WithMaxDenial(0))
	decide(t, l, "0", ByServer)
	do(t, operator, "ACL", "SETUSER", "limiter", "resetpass", ">new")
	first := connections(t, operator)
	do(t, operator, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	run(t, l, 64, lasting(time.Second))
	if n := connections(t, operator) - first; n > 16 {
		t.Errorf("%d new connections in a second", n)
	}
	if s := l.Stats(); s.Opened == 0 || s.Failed[CauseUnauthenticated] == 0 {
		t.Errorf("Stats: %+v", s)
	}
	do(t, operator, "ACL", "SETUSER", "limiter", ">old")
	recovered(t, l, 64)
}
