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
	r := collect(log, oneASecond)
	a := r.byKey["a"]
	if all, refused := r.Clients(0, 1); all != 2 || refused != 1 || r.Requests() != 10 ||
		r.Need(a, 0) != 5 || r.Need(7, 0) != 0 {
		t.Errorf("%d of %d clients refused, a needs %d; want 1 of 2, and 5", refused, all, r.Need(a, 0))
	}
	if got := forClients(r, 0, 0, 0.49, 0.5, 1); fmt.Sprint(got) != "[5 5 1 1]" {
		t.Errorf("bursts %v, want 5 5 1 1", got)
	}
	// Burst 3 refuses the sixth and the seventh request, and burst 4 the seventh.
	if _, got := r.Refusals(0, []uint64{3, 4, 5}); fmt.Sprint(got) != "[2 1 0]" {
		t.Errorf("%v requests refused, want 2, 1 and 0", got)
	}
	if a, b := r.Refused(a, 0, 3), r.Refused(r.byKey["b"], 0, 3); a != 2 || b != 0 {
		t.Errorf("%d requests of a and %d of b are refused, want 2 and 0", a, b)
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
		r := collect(log, oneASecond)
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
		log := randomLog(rnd, limit, 300, func() uint64 { return 1 })
		for i := range log {
			log[i].path, log[i].key = uint32(i), fmt.Sprint(log[i].key, rnd.IntN(9))
		}
		r := collect(log, limit)
		middle := log[0].time + (log[len(log)-1].time-log[0].time)/2
		n := slices.IndexFunc(log, func(r request) bool { return r.time >= middle })
		share := []float64{0, 0.1, 0.5}[seed%3]
		got, ok := r.Try(0, share, 3)
		first := collect(log[:n], limit)
		for i := range first.kinds {
			first.kinds[i] = SeveralPaths
		}
		burst := max(3, first.ForClients(0, share))
		start := request{"the clock starts", log[0].time, 1, 0}
		refused := refusals(t, withCapacity(limit, burst), append([]request{start}, log[n:]...))
		second := collect(log[n:], limit)
		if want := (Trial{burst, uint64(len(refused)), uint64(len(second.byKey))}); n > 1 && r.Matter() ==
			uint64(len(r.byKey)) && (got != want || !ok) {
			t.Fatalf("seed %d: %+v, %v; want %+v", seed, got, ok, want)
		}
	}
	if _, ok := collect([]request{{"a", 1, 2, 0}}, oneASecond).Try(0, 0, 1); ok {
		t.Error("a log without the times of its requests is tried")
	}
}

func TestNeedsThatNoBurstHolds(t *testing.T) {
	for want, tokens := range map[uint64][]uint64{
		tb.MaxCapacity: {tb.MaxCapacity - 1, 1},
		None:           slices.Repeat([]uint64{tb.MaxCapacity}, 5000),
	} {
		var log []request
		for _, n := range tokens {
			log = append(log, request{"a", 0, n, 0})
		}
		if got := collect(log, oneASecond).ForClients(0, 0); got != want {
			t.Errorf("burst %d, want %d", got, want)
		}
	}
}
