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
	r := collect(oneASecond, Costs{Fixed: 1, Whole: true}, log)
	refused := r.Refused(0, 1)
	if len(refused) != 1 || len(r.Clients) != 2 || r.OneIn != 1 {
		t.Fatalf("%d of %d clients refused, one in %d", len(refused), len(r.Clients), r.OneIn)
	}
	a := refused[0]
	want := Client{Key: "a", Requests: 8, First: 1e18, Last: 1e18 + 90e9, Peak: Peak{Most: 3}}
	if a.Key != want.Key || a.Requests != want.Requests || a.First != want.First ||
		a.Last != want.Last || a.Peak.Most != want.Peak.Most || r.Need(a, 0) != 5 {
		t.Errorf("%+v, needs %d; want %+v, needs 5", *a, r.Need(a, 0), want)
	}
	if got := r.ForClients(0, []float64{0, 0.49, 0.5, 1}); fmt.Sprint(got) != "[5 5 1 1]" {
		t.Errorf("bursts %v, want 5 5 1 1", got)
	}
	// Burst 3 refuses the sixth and the seventh request, and burst 4 the seventh.
	if got := r.ForRequests(0, []float64{0, 0.1, 0.2, 0.3}); fmt.Sprint(got) != "[5 5 4 3]" {
		t.Errorf("bursts %v, want 5 5 4 3", got)
	}
}

func TestTheLeastBurstIsOne(t *testing.T) {
	for _, log := range [][]request{nil, seconds("a", 5)} {
		r := collect(oneASecond, Costs{Fixed: 1, Whole: true}, log)
		shares := []float64{0, 0.5}
		clients, requests := r.ForClients(0, shares), r.ForRequests(0, shares)
		if fmt.Sprint(clients, requests) != "[1 1] [1 1]" {
			t.Errorf("%d requests: bursts %d and %d, want 1", len(log), clients, requests)
		}
	}
}

func TestACostThatNoBurstCanPay(t *testing.T) {
	for _, tt := range []struct {
		cost float64
		want uint64
	}{{tb.MaxCapacity, tb.MaxCapacity}, {tb.MaxCapacity + 1, None}, {1e300, None}} {
		for _, whole := range []bool{true, false} {
			r := collect(oneASecond, Costs{Whole: whole}, []request{{"a", 0, tt.cost}, {"a", 0, 1}})
			if got := r.ForClients(0, []float64{0})[0]; got != None {
				t.Errorf("cost %v: burst %d", tt.cost, got)
			}
			r = collect(oneASecond, Costs{Whole: whole}, []request{{"a", 0, tt.cost}})
			if got := r.ForClients(0, []float64{0})[0]; got != tt.want {
				t.Errorf("cost %v: burst %d, want %d", tt.cost, got, tt.want)
			}
		}
	}
}

// A deficit that is too great to be kept must not look like a small one.
func TestDeficitsBeyondAllBursts(t *testing.T) {
	c := New([]tb.Limit{oneASecond}, Costs{Fixed: tb.MaxCapacity, Whole: true}, 10)
	for range 10_000 {
		c.Add([]byte("a"), 0, tb.MaxCapacity)
	}
	r := c.Result()
	if got := r.ForRequests(0, []float64{0.9, 0.1}); got[0] != None || got[1] != None {
		t.Errorf("bursts %v, want none", got)
	}
}

func TestKeysBeyondTheBoundAreSampled(t *testing.T) {
	const keys, bound = 20_000, 1000
	c := New([]tb.Limit{oneASecond}, Costs{Fixed: 1, Whole: true}, bound)
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
	if got := r.ForClients(0, []float64{0, 0.15, 0.5}); got[0] != 10 || got[1] != 9 || got[2]-5 > 1 {
		t.Errorf("bursts %v, want 10, 9 and about 5", got)
	}
	if _, requests := r.Refusals(0, []uint64{1}); requests != nil || r.Clients[0].Times() != nil {
		t.Errorf("%v requests of a sample are refused, want none counted", requests)
	}
	for _, stack := range c.swings[0].stacks {
		if len(stack) > 0 {
			t.Error("a swing is open after the result")
		}
	}
}

func TestBinsCoverAllSizes(t *testing.T) {
	for tokens := uint64(1); tokens < 1<<40; tokens += 1 + tokens/3000 {
		i := binOf(tokens)
		if edgeOf(i) >= tokens || edgeOf(i+1) < tokens {
			t.Fatalf("bin %d of %d tokens is from %d to %d", i, tokens, edgeOf(i), edgeOf(i+1))
		}
		if width := edgeOf(i+1) - edgeOf(i); width > max(1, tokens/(exactBins/2)) {
			t.Fatalf("the bin of %d tokens is %d wide", tokens, width)
		}
	}
}
