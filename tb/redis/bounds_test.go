package redis

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

type site struct {
	*testing.T
	server   *redistest.Server
	way      *proxy // to the server
	operator rueidis.Client
}

// fault is a failure of the table of docs/redis.md.
type fault struct {
	name       string
	begin, end func(*site)
	forgets    bool // the buckets, once
	decides    bool // what it can, although the failure lasts
}

// faults returns the failures that need one server and no other clock.
func faults() []fault {
	commands := func(all ...string) func(*site) {
		return func(s *site) {
			for _, c := range all {
				do(s.T, s.operator, strings.Fields(c)...)
			}
		}
	}
	send := func(sig syscall.Signal) func(*site) {
		return func(s *site) { signal(s.T, s.server, sig) }
	}
	replies := func(f func(io.Writer, []byte) error) func(*site) {
		return func(s *site) { s.way.set(f) }
	}
	const killClients = "CLIENT KILL TYPE normal SKIPME yes"
	return []fault{
		{"stops", send(syscall.SIGSTOP), send(syscall.SIGCONT), false, false},
		{"is killed, and comes back empty", send(syscall.SIGKILL),
			func(s *site) { restart(s.T, s.server.Addr) }, true, false},
		{"FLUSHALL", commands("FLUSHALL"), commands(), true, true},
		{"SCRIPT FLUSH", commands("SCRIPT FLUSH"), commands(), false, true},
		{"CLIENT KILL", commands(killClients), commands(), false, true},
		{"pause", commands("CLIENT PAUSE 60000 WRITE"), commands("CLIENT UNPAUSE"), false, false},
		{"lost replies", replies(drop), replies(deliver), false, false},
		{"cut replies", replies(cut), replies(deliver), false, false},
		{"late replies", replies(delay(60 * time.Millisecond)), replies(deliver), false, false},
		{"noeviction", commands("CONFIG SET maxmemory 1"), commands("CONFIG SET maxmemory 0"),
			false, true},
		{"no right", commands("ACL SETUSER default -evalsha -eval"),
			commands("ACL SETUSER default +evalsha +eval"), false, false},
		{"another password", commands("ACL SETUSER default resetpass >new", killClients),
			commands("ACL SETUSER default nopass"), false, false},
		{"is a replica", commands("REPLICAOF 127.0.0.1 1"), commands("REPLICAOF NO ONE"), false, false},
		{"may not write", commands("CONFIG SET min-replicas-to-write 1"),
			commands("CONFIG SET min-replicas-to-write 0"), false, false},
	}
}

// In each failure, the server grants a key no more than it has forgotten, and the policy no more
// than its bound. By default each failure is under one policy.
func TestFaultsKeepTheBoundOfThePolicy(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	most := map[Policy]int64{Refuse: 0, Fail: 0, LocalShare(2): 5, Allow: 1 << 40}
	policies := []Policy{Refuse, LocalShare(2), Allow, Fail}
	for i, f := range faults() {
		for j, policy := range policies {
			if !*everything && i%len(policies) != j {
				continue
			}
			t.Run(f.name+"/"+policy.String(), func(t *testing.T) {
				t.Parallel() // most of its time it waits
				server := redistest.Start(t)
				s := &site{t, server, startProxy(t, server.Addr), dial(t, server)}
				l := newLimiter(t, dialed(t, s.way.addr), slow, byDefault, WithMaxDenial(0),
					WithPolicy(policy))
				all := []results{run(t, l, 1, calls(loadKeys))}
				f.begin(s)
				during := run(t, l, 16, lasting(200*time.Millisecond))
				f.end(s)
				again, _ := recovered(t, l, 16)
				all = append(all, during, again, run(t, l, 16, calls(40*loadKeys)))

				if !f.decides && during.decided[ByPolicy] == 0 || f.forgets != (total(all) > 10*loadKeys) {
					t.Errorf("%d tokens granted by the server, %d calls decided by the policy meanwhile",
						total(all), during.decided[ByPolicy])
				}
				capacity := int64(slow.Capacity)
				if f.forgets {
					capacity *= 2
				}
				for key := range loadKeys {
					var server, policy int64
					for _, r := range all {
						server, policy = server+r.server[key], policy+r.policy[key]
					}
					if server > capacity || policy > most[l.policy] {
						t.Errorf("key %d: %d tokens granted by the server, %d by the policy", key, server, policy)
					}
				}
				if policy == Allow && sum(during.policy) != during.decided[ByPolicy] {
					t.Errorf("%d of %d calls granted", sum(during.policy), during.decided[ByPolicy])
				}
			})
		}
	}
}

func total(all []results) (n int64) {
	for _, r := range all {
		n += sum(r.server)
	}
	return n
}
