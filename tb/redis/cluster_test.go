package redis

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

type member struct {
	*redistest.Server
	client  rueidis.Client // of this server only
	id, bus string         // bus is the port for the other nodes
}

// startCluster starts a cluster of three masters, which have a third of the slots each.
func startCluster(t *testing.T) []member {
	t.Helper()
	nodes := []member{startNode(t), startNode(t), startNode(t)}
	for i, n := range nodes {
		do(t, n.client, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		do(t, n.client, "CLUSTER", "ADDSLOTSRANGE",
			strconv.Itoa(slots*i/3), strconv.Itoa(slots*(i+1)/3-1))
	}
	for _, n := range nodes[1:] {
		n.meet(t, nodes[0])
	}
	for _, n := range nodes {
		for info := ""; !strings.Contains(info, "cluster_state:ok") ||
			!strings.Contains(info, "cluster_known_nodes:3"); {
			info = text(t, n.client, "CLUSTER", "INFO")
		}
	}
	return nodes
}

func startNode(t *testing.T) member {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bus := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	s := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-port", bus,
		"--cluster-node-timeout", "500", "--repl-diskless-sync-delay", "0")
	n := member{Server: s, bus: bus, client: dialOption(t, rueidis.ClientOption{
		InitAddress: []string{s.Addr}, DisableCache: true, ForceSingleClient: true,
	})}
	n.id = text(t, n.client, "CLUSTER", "MYID")
	return n
}

// meet makes two nodes know each other. A node drops a handshake that takes longer than a second.
// On a busy machine, only one of the nodes may then know the other, until the next MEET.
func (n member) meet(t *testing.T, other member) {
	t.Helper()
	knows := func(a, b member) bool {
		return strings.Contains(text(t, a.client, "CLUSTER", "NODES"), b.id)
	}
	greet := func(a, b member) {
		host, port, _ := strings.Cut(b.Addr, ":")
		do(t, a.client, "CLUSTER", "MEET", host, port, b.bus)
	}
	for !knows(n, other) || !knows(other, n) {
		greet(n, other)
		greet(other, n)
	}
}

func dialOption(t testing.TB, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSingleEndpointOfACluster(t *testing.T) {
	nodes := startCluster(t)
	for _, tt := range []struct {
		addr string
		mode rueidis.ClientMode
	}{
		{nodes[1].Addr, rueidis.ClientModeCluster},
		{redistest.Start(t).Addr, rueidis.ClientModeStandalone},
	} {
		o, _ := ParseAddress(tt.addr)
		c, err := NewClient(o)
		if err != nil || c.Mode() != tt.mode {
			t.Fatalf("%s: mode %v, want %v, %v", tt.addr, c.Mode(), tt.mode, err)
		}
		t.Cleanup(c.Close)
		l := newLimiter(t, c, slow)
		for i := range 30 {
			if d, err := l.Allow(t.Context(), strconv.Itoa(i)); err != nil || !d.Allowed {
				t.Errorf("key %d: %+v, %v", i, d, err)
			}
		}
		if failed := l.Stats().Failed; len(failed) > 0 {
			t.Errorf("failures: %v", failed)
		}
		all := c.DoMulti(t.Context(), c.B().Get().Key("a").Build(), c.B().Get().Key("b").Build())
		if len(all) != 2 || !rueidis.IsRedisNil(all[0].Error()) || !rueidis.IsRedisNil(all[1].Error()) {
			t.Errorf("%v, want two replies without a value", all)
		}
	}
	if c, err := NewClient(rueidis.ClientOption{ForceSingleClient: true}); c != nil || err == nil {
		t.Errorf("%v, %v without an address", c, err)
	}
}

// The endpoint cannot be reached at the start, so the client takes it for a single server. The
// first keys of other nodes show that it is a cluster, by a command of one key or of several.
func TestEndpointThatIsNotReachedAtTheStart(t *testing.T) {
	nodes := startCluster(t)
	for _, opts := range [][]Option{nil, {WithoutBatching()}} {
		p := startProxy(t, "127.0.0.1:1")
		o, _ := ParseAddress(p.addr)
		c, err := NewClient(o)
		if err == nil || c == nil {
			t.Fatalf("%v, %v, want a client and an error", c, err)
		}
		t.Cleanup(c.Close)
		l := newLimiter(t, c, slow, append(opts, WithMaxDenial(0))...)
		decide(t, l, "0", ByPolicy)
		early := c.B().Get().Key("06S").Build() // of slot 0
		p.move(nodes[0].Addr)
		var wg sync.WaitGroup
		for caller := range 8 {
			wg.Go(func() {
				for i := caller; c.Mode() != rueidis.ClientModeCluster; i++ {
					takeAll(t, newCharge(t, l, strconv.Itoa(i), 1), newCharge(t, l, strconv.Itoa(i+1), 1))
					if _, err := l.Allow(t.Context(), strconv.Itoa(i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		_ = c.Do(t.Context(), early) // by the client that has built it: the other one would panic
		for i := range 60 {          // until the breaker of its slots has closed
			for o := (Outcome{By: ByPolicy}); o.By != ByServer; {
				if o, err = l.Decide(t.Context(), "later "+strconv.Itoa(i), 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 60 {
			decide(t, l, "last "+strconv.Itoa(i), ByServer)
		}
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	c := dial(t, nodes[0].Server)
	l := newLimiter(t, c, slow)
	for i := range 60 {
		wantTake(t, l, strconv.Itoa(i), 4, granted(6))
	}
	for _, n := range nodes {
		if n := number(t, n.client, "DBSIZE"); n < 5 {
			t.Errorf("a node has %d of 60 buckets", n)
		}
	}
	t.Run("across slots", func(t *testing.T) {
		charges := func(last float64) []tb.Charge {
			return []tb.Charge{
				newCharge(t, l, "0", 1), newCharge(t, l, "1", 2), newCharge(t, l, "2", last),
			}
		}
		for _, last := range []float64{3, 5} {
			if decisions, ok := takeAll(t, charges(last)...); ok != (last == 3) {
				t.Errorf("%t: %+v", ok, decisions)
			}
		}
		for key, want := range map[string]float64{"0": 5, "1": 4, "2": 3} {
			wantTokens(t, l, key, want)
		}
	})
	t.Run("with the least rights", func(t *testing.T) {
		var c rueidis.Client
		for _, n := range nodes {
			c = login(t, n.Server, clusterRights, false)
		}
		useAll(t, newLimiter(t, c, slow))
	})
	t.Run("a silent node leaves commands to the others", func(t *testing.T) {
		l := newLimiter(t, c, ample, WithoutBatching(), WithPrefix("silent:"))
		wantBound(t, l, nodes[0].client, maxInFlight/ranges, func() {
			decide(t, l, "a", ByServer)
			if n := len(l.pending.ready); n > 0 {
				t.Errorf("a command on another node looks at %d calls that wait for the silent one", n)
			}
		})
	})
	t.Run("Close while a node is silent", func(t *testing.T) {
		l, want := newLeases(t, c, 1000), 0.0
		for i := range 1000 {
			if l.slot(l.name(strconv.Itoa(i))) >= slots/ranges*6 { // a part of range 5 is on the node
				want++
			}
		}
		defer pause(t, nodes[0].client)()
		l.timeout = 2 * time.Second // of the node
		l.leases.close()
		if n := l.Stats().ReturnedTokens; n < want {
			t.Errorf("%v tokens were given back, want %v", n, want)
		}
	})
	t.Run("a key under two limits", func(t *testing.T) {
		for key, want := range map[string]uint64{"a": 1, "": 2, "}b": 2} { // an empty tag is none
			second, hour := newLimiter(t, c, slow), newLimiter(t, c, slow, WithPrefix("hour:"))
			_, ok := takeAll(t, newCharge(t, second, key, 1), newCharge(t, hour, key, 1))
			if n := second.Stats().Commands + hour.Stats().Commands; !ok || n != want {
				t.Errorf("%q: %t, %d commands, want %d", key, ok, n, want)
			}
		}
	})
}

// A slot moves from one master to another while callers use two buckets of a key in it, one by
// itself and both together. Each grant takes its tokens once.
func TestSlotOfAClusterMovesUnderLoad(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	limit := tb.Limit{Capacity: 1_000_000, Tokens: 1, Per: 24 * time.Hour}
	c := dial(t, nodes[0].Server)
	a, b := newLimiter(t, c, limit), newLimiter(t, c, limit, WithPrefix("hour:"))
	number := a.slot(a.name("tenant"))
	slot := strconv.Itoa(number)
	from := nodes[number*3/slots]
	to := nodes[(number*3/slots+1)%3]

	var alone, both atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !stop.Load() {
				d, err := a.Allow(t.Context(), "tenant")
				switch {
				case err != nil:
					t.Errorf("Allow: %v", err)
				case d.Allowed:
					alone.Add(1)
				}
			}
		})
		wg.Go(func() {
			for !stop.Load() {
				if _, ok := takeAll(t, newCharge(t, a, "tenant", 1), newCharge(t, b, "tenant", 1)); ok {
					both.Add(1)
				}
			}
		})
	}
	// progress waits until the callers have made some calls.
	progress := func() {
		for before := alone.Load(); alone.Load() < before+100; {
			do(t, nodes[0].client, "PING")
		}
	}
	host, port, _ := strings.Cut(to.Addr, ":")
	progress()
	do(t, to.client, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
	do(t, from.client, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
	progress()
	do(t, from.client, "MIGRATE", host, port, a.name("tenant"), "0", "5000")
	progress() // a is there, b is here: TRYAGAIN
	do(t, from.client, "MIGRATE", host, port, b.name("tenant"), "0", "5000")
	progress() // ASK
	for _, n := range []member{to, from} {
		do(t, n.client, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
	}
	progress() // MOVED
	stop.Store(true)
	wg.Wait()
	for l, granted := range map[*Limiter]int64{a: alone.Load() + both.Load(), b: both.Load()} {
		d, err := l.Peek(t.Context(), "tenant")
		if err != nil || int64(d.Remaining) != int64(limit.Capacity)-1-granted {
			t.Errorf("%s: %+v, %v, after %d grants of %d", l.prefix, d, err, granted, limit.Capacity)
		}
	}
	if n := a.Stats().Failed[CauseTimeout]; n > 0 {
		t.Errorf("%d calls have not waited until the slot had moved", n)
	}
	t.Logf("%d grants of one, %d of both", alone.Load(), both.Load())
}
