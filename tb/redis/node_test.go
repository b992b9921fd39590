package redis

import (
	"reflect"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestOneMasterIsStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the cluster takes seconds to notice")
	}
	nodes := startCluster(t)
	for _, n := range nodes {
		do(t, n.client, "CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	l := newLimiter(t, dial(t, nodes[0].Server), ample, WithTimeout(250*time.Millisecond))
	var up []string          // keys of the first master
	down := map[int]string{} // keys of the last one, by range
	for i := 0; len(up) < 10 || len(down) < 2; i++ {
		key := strconv.Itoa(i)
		switch slot := l.slot(l.name(key)); {
		case slot < slots*5/ranges:
			up = append(up, key)
		case slot >= slots*14/ranges:
			down[slot*ranges/slots] = key
		}
	}
	signal(t, nodes[2].Server, syscall.SIGSTOP)
	defer signal(t, nodes[2].Server, syscall.SIGCONT)
	for i, server := 0, 0; (l.Stats().Opened < 2 || server < 500) && !t.Failed(); i++ {
		var wg sync.WaitGroup
		for _, key := range down {
			wg.Go(func() { decide(t, l, key, ByPolicy) })
		}
		switch o, err := l.Decide(t.Context(), up[i%10], 1); {
		case err != nil || o.Failure != nil && o.Failure.Cause != CauseTimeout:
			t.Errorf("key of another master: %+v, %v, %v", o, err, o.Failure)
		case o.Allowed: // and not late because the machine is busy
			server++
		}
		wg.Wait()
	}
	if s := l.Stats(); s.Breaker != BreakerOpen {
		t.Errorf("Stats: %+v", s)
	}
}

// The nodes of a cluster are counted together, and the greatest offset is shown.
func TestStatsOfSeveralNodes(t *testing.T) {
	const start = 1_700_000_000_000_000 // µs
	nodes := []*node{
		{},
		{offset: offset{known: true, low: start - 4, high: start + 4}},
		{offset: offset{known: true, low: start + 10, high: start + 20, steps: 2}},
		{offset: offset{known: true, low: start - 50, high: start - 30, steps: 3}},
		{offset: offset{known: true, low: start, high: start + 2}},
	}
	nodes[1].breaker.opened, nodes[2].breaker.opened = 4, 5
	want := []ServerStats{
		{},
		{Opened: 4, OffsetError: 5 * time.Microsecond},
		{Opened: 9, Offset: 15 * time.Microsecond, OffsetError: 6 * time.Microsecond, ClockSteps: 2},
		{Opened: 9, Offset: -40 * time.Microsecond, OffsetError: 11 * time.Microsecond, ClockSteps: 5},
		{Opened: 9, Offset: -40 * time.Microsecond, OffsetError: 11 * time.Microsecond, ClockSteps: 5},
	}
	var s ServerStats
	for i, n := range nodes {
		n.addTo(&s, 0, start)
		if !reflect.DeepEqual(s, want[i]) {
			t.Errorf("after node %d: %+v, want %+v", i, s, want[i])
		}
	}
	var epoch ServerStats // of a server whose clock begins
	(&node{offset: offset{known: true, high: 2}}).addTo(&epoch, 0, 0)
	if epoch.Offset != time.Microsecond || epoch.OffsetError != 2*time.Microsecond {
		t.Errorf("%v within %v, want 1µs within 2µs", epoch.Offset, epoch.OffsetError)
	}
}

func TestCausesHaveNames(t *testing.T) {
	for c, want := range map[Cause]string{
		-1: "Cause(-1)", 0: "busy", causes - 1: "unauthenticated", causes: "Cause(13)",
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
