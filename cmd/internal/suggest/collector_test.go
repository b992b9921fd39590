package suggest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var oneASecond = tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}

// seconds returns requests of a key at these seconds after the first line, for one path or several.
func seconds(key string, several bool, times ...int64) (log []request) {
	for i, s := range times {
		path := uint32(0)
		if several {
			path = uint32(i)
		}
		log = append(log, request{key, 1e18 + s*1e9, 1, path})
	}
	return log
}

func TestClientsByHand(t *testing.T) {
	log := append(seconds("a", true, 0, 0, 0, 2, 2, 2, 2, 90), seconds("b", true, 95, 97)...)
	r := collect(oneASecond, 1, log)
	refused := r.Refused(0, 1)
	if len(refused) != 1 || len(r.Clients) != 2 || r.OneIn != 1 {
		t.Fatalf("%d of %d clients refused, one in %d", len(refused), len(r.Clients), r.OneIn)
	}
	a := refused[0]
	if a.Key != "a" || a.Requests != 8 || a.Peak.Most != 4 || r.Need(a, 0) != 5 {
		t.Errorf("%+v, needs %d; want 8 requests of a, 4 in a second, and 5", *a, r.Need(a, 0))
	}
	if got := forClients(r, 0, 0, 0.49, 0.5, 1); fmt.Sprint(got) != "[5 5 1 1]" {
		t.Errorf("bursts %v, want 5 5 1 1", got)
	}
	// Burst 3 refuses the sixth and the seventh request, and burst 4 the seventh.
	if _, got := r.Refusals(0, []uint64{3, 4, 5}); fmt.Sprint(got) != "[2 1 0]" {
		t.Errorf("%v requests refused, want 2, 1 and 0", got)
	}
	var got []int64
	r.EachRefused(a, 0, 3, func(t int64) { got = append(got, (t-1e18)/1e9) })
	if fmt.Sprint(got) != "[2 2]" {
		t.Errorf("refused at %v, want 2 and 2", got)
	}
}

// A share is of the clients that ask for several paths. The ones with one path count, too, if they
// are as many, and a client with one request only if there is no other one.
func TestTheShareIsOfClientsThatMatter(t *testing.T) {
	clients := func(n, requests int, several bool) (log []request) {
		for i := range n {
			log = append(log, seconds(fmt.Sprint(n, several, i), several, make([]int64, requests)...)...)
		}
		return log
	}
	for _, tt := range []struct {
		several, one, single int
		matter, burst        uint64
	}{
		{10, 9, 1000, 10, 6},  // 10 % of ten clients is one of the ten, which all need 6
		{10, 10, 1000, 20, 7}, // as in the log of an API
		{0, 10, 1000, 10, 7}, {0, 0, 1000, 1000, 1}, {9, 0, 0, 9, 6},
	} {
		log := append(clients(tt.several, 6, true), clients(tt.one, 7, false)...)
		log = append(log, clients(tt.single, 1, false)...)
		r := collect(oneASecond, 1, log)
		if got := r.ForClients(0, 0.1); got != tt.burst || r.Matter() != tt.matter {
			t.Errorf("%+v: burst %d for %d clients", tt, got, r.Matter())
		}
	}
}

// What the first half asks for is what its log alone asks for, and the second half is decided with
// full buckets.
func TestOneHalfIsTriedOnTheOther(t *testing.T) {
	for seed := range programs(200) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		limit := randomLimit(rnd)
		log := randomLog(rnd, limit, 300, func() uint64 { return 2 })
		for i := range log {
			log[i].path, log[i].key = uint32(i), fmt.Sprint(log[i].key, rnd.IntN(9))
		}
		r := collect(limit, 2, log)
		middle := log[0].time + (log[len(log)-1].time-log[0].time)/2
		n := slices.IndexFunc(log, func(r request) bool { return r.time >= middle })
		share := []float64{0, 0.1, 0.5}[seed%3]
		got, ok := r.Try(0, share, 3)
		first := collect(limit, 2, log[:n])
		for _, cl := range first.Clients {
			cl.Kind = SeveralPaths
		}
		burst := max(3, first.ForClients(0, share))
		start := request{"the clock starts", log[0].time, 1, 0}
		refused := refusals(t, withCapacity(limit, burst), append([]request{start}, log[n:]...))
		second := collect(limit, 2, log[n:])
		if want := (Trial{burst, uint64(len(refused)), uint64(len(second.Clients))}); n > 1 && r.Matter() ==
			uint64(len(r.Clients)) && (got != want || !ok) {
			t.Fatalf("seed %d: %+v, %v; want %+v", seed, got, ok, want)
		}
	}
	if _, ok := collect(oneASecond, 0, seconds("a", true, 1, 2)).Try(0, 0, 1); ok {
		t.Error("a log without the times of its requests is tried")
	}
}

func TestACostThatNoBurstCanPay(t *testing.T) {
	for cost, want := range map[uint64]uint64{
		tb.MaxCapacity: tb.MaxCapacity, tb.MaxCapacity + 1: None, 1 << 63: None,
	} {
		r := collect(oneASecond, 0, []request{{"a", 0, cost, 0}, {"a", 0, 1, 0}})
		if got := r.ForClients(0, 0); got != None {
			t.Errorf("cost %v: burst %d", cost, got)
		}
		r = collect(oneASecond, 0, []request{{"a", 0, cost, 0}})
		if got := r.ForClients(0, 0); got != want {
			t.Errorf("cost %v: burst %d, want %d", cost, got, want)
		}
	}
}

func TestKeysBeyondTheBoundAreSampled(t *testing.T) {
	const keys, bound = 20_000, 1000
	c := New([]tb.Limit{oneASecond}, 1, bound)
	for i := range keys {
		for j := range 2 + i%10 { // so 10 % need 11
			c.Add(fmt.Append(nil, i), int64(i)*1e6, 1, uint32(j))
		}
		if len(c.clients.Values) > bound || i < bound && len(c.clients.Values) != i+1 {
			t.Fatalf("%d clients of %d, want at most %d", len(c.clients.Values), i+1, bound)
		}
	}
	r := c.Result(c)
	if n := uint64(len(r.Clients)) * r.OneIn; r.OneIn < 2 || n < keys*8/10 || n > keys*12/10 {
		t.Errorf("%d clients, one in %d, of %d", len(r.Clients), r.OneIn, keys)
	}
	if got := forClients(r, 0, 0, 0.15, 0.5); got[0] != 11 || got[1] != 10 || got[2]-6 > 1 {
		t.Errorf("bursts %v, want 11, 10 and about 6", got)
	}
	if _, requests := r.Refusals(0, []uint64{1}); requests != nil || r.Clients[0].times != nil {
		t.Errorf("%v requests of a sample are refused, want none counted", requests)
	}
}
