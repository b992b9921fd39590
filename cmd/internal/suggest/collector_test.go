package suggest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var oneASecond = tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}

// seconds returns requests of a key at these seconds after the first line.
func seconds(key string, times ...int64) (log []request) {
	for _, s := range times {
		log = append(log, request{key, 1e18 + s*1e9, 1})
	}
	return log
}

func TestClientsByHand(t *testing.T) {
	log := append(seconds("a", 0, 0, 0, 2, 2, 2, 1, 90), seconds("b", 5)...)
	r := collect(oneASecond, 1, log)
	refused := r.Refused(0, 1)
	if len(refused) != 1 || len(r.Clients) != 2 || r.OneIn != 1 {
		t.Fatalf("%d of %d clients refused, one in %d", len(refused), len(r.Clients), r.OneIn)
	}
	a := refused[0]
	if a.Key != "a" || a.Requests != 8 || a.Peak.Most != 3 || r.Need(a, 0) != 5 {
		t.Errorf("%+v, needs %d; want 8 requests of a, 3 in a second, and 5", *a, r.Need(a, 0))
	}
	if got := forClients(r, 0, 0, 0.49, 0.5, 1); fmt.Sprint(got) != "[5 5 1 1]" {
		t.Errorf("bursts %v, want 5 5 1 1", got)
	}
	// Burst 3 refuses the sixth and the seventh request, and burst 4 the seventh.
	if _, got := r.Refusals(0, []uint64{3, 4, 5}); fmt.Sprint(got) != "[2 1 0]" {
		t.Errorf("%v requests refused, want 2, 1 and 0", got)
	}
	// The sixth is at second 2, and the seventh at second 1.
	var got []int64
	r.EachRefused(a, 0, 3, func(t int64) { got = append(got, (t-1e18)/1e9) })
	if fmt.Sprint(got) != "[2 1]" {
		t.Errorf("refused at %v, want 2 and 1", got)
	}
}

func TestACostThatNoBurstCanPay(t *testing.T) {
	for cost, want := range map[uint64]uint64{
		tb.MaxCapacity: tb.MaxCapacity, tb.MaxCapacity + 1: None, 1 << 63: None,
	} {
		r := collect(oneASecond, 0, []request{{"a", 0, cost}, {"a", 0, 1}})
		if got := r.ForClients(0, 0); got != None {
			t.Errorf("cost %v: burst %d", cost, got)
		}
		r = collect(oneASecond, 0, []request{{"a", 0, cost}})
		if got := r.ForClients(0, 0); got != want {
			t.Errorf("cost %v: burst %d, want %d", cost, got, want)
		}
	}
}

func TestKeysBeyondTheBoundAreSampled(t *testing.T) {
	const keys, bound = 20_000, 1000
	c := New([]tb.Limit{oneASecond}, 1, bound)
	for i := range keys {
		for range 1 + i%10 { // so 10 % need 10
			c.Add(fmt.Append(nil, i), int64(i)*1e6, 1)
		}
		if len(c.clients.Values) > bound || i < bound && len(c.clients.Values) != i+1 {
			t.Fatalf("%d clients of %d, want at most %d", len(c.clients.Values), i+1, bound)
		}
	}
	r := c.Result()
	if n := uint64(len(r.Clients)) * r.OneIn; r.OneIn < 2 || n < keys*8/10 || n > keys*12/10 {
		t.Errorf("%d clients, one in %d, of %d", len(r.Clients), r.OneIn, keys)
	}
	if got := forClients(r, 0, 0, 0.15, 0.5); got[0] != 10 || got[1] != 9 || got[2]-5 > 1 {
		t.Errorf("bursts %v, want 10, 9 and about 5", got)
	}
	if _, requests := r.Refusals(0, []uint64{1}); requests != nil || r.Clients[0].times != nil {
		t.Errorf("%v requests of a sample are refused, want none counted", requests)
	}
}
