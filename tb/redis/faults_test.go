package redis

import (
	"context"
	"flag"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

var stall = flag.Duration("stall", 500*time.Millisecond, "time for which a server is stopped")

// A server is stopped for a time. Its callers get decisions of the policy in time, and their
// commands take nothing when the server reads them later.
func TestStoppedServer(t *testing.T) {
	s := redistest.Start(t)
	operator := dial(t, s)
	l := newLimiter(t, dialed(t, s.Addr), ample, byDefault, WithMaxDenial(0))
	const callers = 64
	before, _ := recovered(t, l, callers) // a first command, which may be slow
	normal := run(t, l, callers, calls(500))
	granted := sum(before.server) + sum(normal.server)

	first, failures, commands := connections(t, operator), timeouts(l), l.Stats().Commands
	signal(t, s, syscall.SIGSTOP)
	stopped := run(t, l, callers, lasting(*stall))
	failures -= timeouts(l)
	wantPrompt(t, l, stopped)
	if stopped.decided[ByServer] > 0 || sum(stopped.policy) > 0 {
		t.Errorf("while the server is stopped: %+v", stopped)
	}
	// A command for each caller, and the probes.
	if s := l.Stats(); s.Opened == 0 || s.Commands-commands > 2*callers {
		t.Errorf("%d commands while the server is stopped: %+v", s.Commands-commands, s)
	}

	signal(t, s, syscall.SIGCONT)
	again, took := recovered(t, l, callers)
	granted += sum(again.server)
	opened := connections(t, operator) - first
	ghosts := taken(t, operator, l) - granted
	t.Logf("back after %v, %d new connections, %d tokens taken by calls that had given up: %+v",
		took.Round(time.Millisecond), opened, ghosts, l.Stats())
	// Only a call outside the stop may have timed out after the server took its token.
	failures += timeouts(l)
	if ghosts < 0 || ghosts > failures || uint64(ghosts) != l.Stats().Abandoned {
		t.Errorf("%d tokens taken by calls that had given up, want at most %d", ghosts, failures)
	}
	if opened > 16 { // one after each probe at most
		t.Errorf("%d new connections", opened)
	}
}

func timeouts(l *Limiter) int64 { return int64(l.Stats().Failed[CauseTimeout]) }

func signal(t *testing.T, s *redistest.Server, sig syscall.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Error(err)
	}
}

func TestScriptFlushUnderLoad(t *testing.T) {
	s := redistest.Start(t)
	operator := dial(t, s)
	l := newLimiter(t, dial(t, s), slow, WithMaxDenial(0))
	var flushes int64
	seen := make(chan results)
	go func() {
		seen <- run(t, l, 16, func(calls int64, _ time.Duration) bool {
			s := l.Stats()
			return calls >= 300 && s.Loaded >= 20 || len(s.Failed) > 0
		})
	}()
	var all results
	for done := false; !done; {
		select {
		case all = <-seen:
			done = true
		default:
			do(t, operator, "SCRIPT", "FLUSH")
			flushes++
		}
	}
	stats := l.Stats()
	t.Logf("%d flushes, %d commands of %d found no script", flushes, stats.Loaded, stats.Commands)
	if all.decided[ByPolicy] > 0 || len(stats.Failed) > 0 {
		t.Errorf("Stats: %+v", stats)
	}
	for key, n := range all.server {
		if n != 10 {
			t.Errorf("key %d: %d tokens granted, want 10", key, n)
		}
	}
}

// The server closes its connections under load. A call may fail with its connection, and its token
// may be taken. No command is sent twice.
func TestKilledConnections(t *testing.T) {
	const kills = 4
	s := redistest.Start(t)
	operator := dial(t, s)
	l := newLimiter(t, dialed(t, s.Addr), ample, byDefault, WithMaxDenial(0))
	first := connections(t, operator)
	var killed atomic.Int64
	seen := make(chan results)
	go func() {
		seen <- run(t, l, 64, func(int64, time.Duration) bool { return killed.Load() == kills })
	}()
	for killed.Load() < kills {
		if number(t, operator, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") > 0 {
			killed.Add(1) // the client had come back since the last time
		}
	}
	all := <-seen
	wantPrompt(t, l, all)
	again, took := recovered(t, l, 64)
	opened := connections(t, operator) - first
	granted := sum(all.server) + sum(again.server)
	ghosts, stats := taken(t, operator, l)-granted, l.Stats()
	t.Logf("back after %v, %d new connections, %d tokens taken by calls that failed: %+v",
		took.Round(time.Millisecond), opened, ghosts, stats)
	if ghosts < 0 || uint64(ghosts) > stats.Failed[CauseUnreachable]+stats.Failed[CauseTimeout] {
		t.Errorf("%d tokens granted, %d more taken", granted, ghosts)
	}
	if opened > kills+4 {
		t.Errorf("%d new connections after %d kills", opened, kills)
	}
}

func TestLimiterBeforeTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	l := newLimiter(t, dialed(t, addr), slow, byDefault, WithMaxDenial(0))
	before := run(t, l, 64, calls(1000))
	wantPrompt(t, l, before)
	if before.decided[ByServer] > 0 || sum(before.policy) > 0 {
		t.Errorf("%+v", before)
	}
	restart(t, addr)
	again, took := recovered(t, l, 64)
	opened := connections(t, dialed(t, addr)) - 1
	t.Logf("back after %v, %d connections", took.Round(time.Millisecond), opened)
	if again.decided[ByServer] == 0 || opened > 4 {
		t.Errorf("%d connections: %+v", opened, again)
	}
}

// A server that stops for longer than the timeout, and goes on, fails the calls that are under way,
// and no other ones.
func TestHiccup(t *testing.T) {
	t.Parallel()
	const callers, timeout = 64, time.Second
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), ample, WithMaxDenial(0), WithTimeout(timeout))
	var stop sync.Once
	all := run(t, l, callers, func(calls int64, d time.Duration) bool {
		if calls > 500 {
			stop.Do(func() { do(t, dial(t, s), "CLIENT", "PAUSE", "1400", "ALL") })
		}
		return d > 2*timeout
	})
	if n := all.decided[ByPolicy]; n == 0 || n > callers {
		t.Errorf("%d calls decided by the policy, want 1 to %d", n, callers)
	}
	if s := l.Stats(); s.Opened > 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// Replies are lost, late or cut. No command is sent twice, and what the policy refuses is not
// granted. A command whose reply is lost has taken its token.
func TestDamagedReplies(t *testing.T) {
	for _, tt := range []struct {
		name    string
		replies func(io.Writer, []byte) error
	}{
		{"drop", drop},
		{"cut", cut},
		{"delay", delay(60 * time.Millisecond)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most of its time it waits
			if testing.Short() && tt.name != "drop" {
				t.Skip("takes seconds")
			}
			s := redistest.Start(t)
			operator := dial(t, s)
			p := startProxy(t, s.Addr)
			l := newLimiter(t, dialed(t, p.addr), ample, byDefault, WithMaxDenial(0))
			const callers = 64
			before := run(t, l, callers, calls(500))
			warm, _ := recovered(t, l, callers)
			first := connections(t, operator)
			p.set(tt.replies)
			during := run(t, l, callers, lasting(time.Second))
			sent := l.Stats().Commands
			p.set(deliver)
			wantPrompt(t, l, during)
			if tt.name == "drop" && during.decided[ByServer] > 0 || during.decided[ByPolicy] == 0 {
				t.Errorf("during the fault: %+v", during)
			}
			after, took := recovered(t, l, callers)
			opened := connections(t, operator) - first
			granted := sum(before.server) + sum(warm.server) + sum(during.server) + sum(after.server)
			ghosts, stats := taken(t, operator, l)-granted, l.Stats()
			t.Logf("%d commands until the end of the fault; back after %v, %d new connections, "+
				"%d tokens taken by calls that had failed: %+v",
				sent, took.Round(time.Millisecond), opened, ghosts, stats)
			if failed := stats.Failed[CauseTimeout] + stats.Failed[CauseUnreachable]; ghosts < 0 ||
				uint64(ghosts) > failed {
				t.Errorf("%d tokens granted, %d more taken, %d calls failed", granted, ghosts, failed)
			}
			if n := commands(t, operator); n > int(stats.Commands)+loadKeys+1 { // taken makes some
				t.Errorf("%d scripts for %d commands", n, stats.Commands)
			}
			if opened > 16 { // a herd would be one for each of 64 callers
				t.Errorf("%d new connections", opened)
			}
		})
	}
}

// A server that does not answer opens the breaker, also if all of its callers leave before the
// timeout: with contexts of their own, or for a lease.
func TestSilentServerOpensTheBreaker(t *testing.T) {
	s := redistest.Start(t)
	for name, opts := range map[string][]Option{"contexts": {WithoutBatching()},
		"leases": {WithoutBatching(), WithLease(20 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, dial(t, s), perSecond(100, 1), append(opts, byDefault)...)
			defer pause(t, dial(t, s))()
			for i := 0; l.Stats().Opened == 0; i++ {
				if i == 100 {
					t.Fatalf("the breaker is closed after %d calls: %+v", i, l.Stats().Failed)
				}
				ctx, cancel := t.Context(), func() {}
				if name == "contexts" {
					ctx, cancel = context.WithTimeout(ctx, 25*time.Millisecond)
				}
				if _, err := l.Decide(ctx, strconv.Itoa(i), 1); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
}

func commands(t *testing.T, c rueidis.Client) int {
	t.Helper()
	return int(figure(t, c, "commandstats", "cmdstat_evalsha:calls") +
		figure(t, c, "commandstats", "cmdstat_eval:calls"))
}

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
	decide(t, newLimiter(t, dial(t, s), slow), "of another limit", ByServer)
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
	// A refused group may leave a bucket under its old limit, but must write a hold.
	for hold, cost := range map[time.Duration]float64{0: 1, time.Minute: 2} {
		first := newCharge(t, l, "drained", 1).(*Charge)
		first.HoldOnRefusal(hold)
		_, ok := takeAll(t, first, newCharge(t, l, "of another limit", cost))
		if failure := first.Failure(); ok || (failure != nil) != (hold > 0) {
			t.Errorf("a group that holds for %v: %t, %v", hold, ok, failure)
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
	used := int(figure(t, operator, "memory", "used_memory"))
	do(t, operator, "CONFIG", "SET", "maxmemory", strconv.Itoa(used))
	charge("more", others, 1)
	forgiven := 0
	for i := range drained {
		if decide(t, l, "drained"+strconv.Itoa(i), ByServer).Allowed {
			forgiven++
		}
	}
	evicted := figure(t, operator, "stats", "evicted_keys")
	t.Logf("%v buckets evicted, %d of %d drained ones", evicted, forgiven, drained)
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
	signal(t, master, syscall.SIGKILL)
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
