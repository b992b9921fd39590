package redis

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

func TestSlotIsTheServersSlot(t *testing.T) {
	c := dial(t, redistest.Start(t, "--cluster-enabled", "yes"))
	l := newLimiter(t, c, slow)
	tagged := newLimiter(t, c, slow, WithTag(func(key string) string { return key[:1] }))
	long := strings.Repeat("k", 999)
	for _, key := range []string{"a", "b", "203.0.113.195", "x{y}z", "\x00\xff", long} {
		for _, name := range []string{l.name(key), tagged.name(key)} {
			slot := do(t, c, "CLUSTER", "KEYSLOT", name)
			if want, err := slot.AsInt64(); err != nil || int64(slotOf(tagOf(name))) != want {
				t.Errorf("%q: slot %d, %v, want %d", name, slotOf(tagOf(name)), err, want)
			}
		}
	}
	if l := newLimiter(t, c, slow); l.node("") != &l.nodes[slotOf("tb:{}")*ranges/slots] {
		t.Error("an empty tag: not the node of the name's slot")
	}
}

// A master of a cluster that is stopped concerns its keys only.
func TestOneMasterIsStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("the cluster takes seconds to notice")
	}
	nodes := startCluster(t)
	for _, n := range nodes {
		do(t, n.client, "CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	l, err := New(dial(t, nodes[0].Server), ample)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var up, down []string // keys of the first master, and of the last
	for i := 0; len(up) < 10 || len(down) < 10; i++ {
		key := strconv.Itoa(i)
		switch slot := slotOf(tagOf(l.name(key))); {
		case slot < slots*5/ranges:
			up = append(up, key)
		case slot >= slots*11/ranges:
			down = append(down, key)
		}
	}
	for _, key := range append(up[:10:10], down[:10]...) { // learn the clocks
		if _, err := l.Peek(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	signal(t, nodes[2].Server, syscall.SIGSTOP)
	defer signal(t, nodes[2].Server, syscall.SIGCONT)
	by := make(map[Decider]int)
	for i := 0; l.Stats().Opened < 2 || by[ByServer] < 500; i++ {
		o, err := l.Decide(t.Context(), down[i%10], 1)
		if err != nil || o.By != ByPolicy {
			t.Fatalf("key of the stopped master: %+v, %v", o, err)
		}
		o, err = l.Decide(t.Context(), up[i%10], 1)
		if err != nil || !o.Allowed {
			t.Fatalf("key of another master: %+v, %v, %v", o, err, o.Failure)
		}
		by[o.By]++
	}
	if s := l.Stats(); s.Breaker != BreakerOpen {
		t.Errorf("Stats: %+v", s)
	}
}
