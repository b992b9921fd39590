package redis

import (
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

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
			l, err := New(dialed(t, p.addr), ample, WithMaxDenial(0))
			if err != nil {
				t.Fatal(err)
			}
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

// A server that does not answer in time opens the breaker, also if its callers leave a little
// before the timeout: with contexts of their own, or for a lease.
func TestSlowServerOpensTheBreaker(t *testing.T) {
	t.Parallel()
	p := startProxy(t, redistest.Start(t).Addr)
	for name, opts := range map[string][]Option{"contexts": nil,
		"leases": {WithLease(20 * time.Second)}} {
		t.Run(name, func(t *testing.T) {
			p.set(deliver)
			l, err := New(dialed(t, p.addr), perSecond(100, 1), opts...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			p.set(delay(200 * time.Millisecond))
			for i := 0; l.Stats().Opened == 0; i++ {
				if i == 100 {
					t.Fatalf("the breaker is closed after %d calls: %+v", i, l.Stats().Failed)
				}
				ctx, cancel := t.Context(), func() {}
				if name == "contexts" {
					ctx, cancel = context.WithTimeout(ctx, 45*time.Millisecond)
				}
				if _, err := l.Decide(ctx, strconv.Itoa(i), 1); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
}

// commands returns how many scripts a server has run.
func commands(t *testing.T, c rueidis.Client) int {
	t.Helper()
	return info(t, c, "commandstats", "cmdstat_evalsha:calls=") +
		info(t, c, "commandstats", "cmdstat_eval:calls=")
}
