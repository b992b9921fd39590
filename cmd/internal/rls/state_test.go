package rls

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A rule keeps its buckets and counts while its descriptors stay the same.
func TestSetConfig(t *testing.T) {
	s, now := newService(t, limit("kept", perMinute+"3")+limit("changed", perMinute+"3")+
		limit("gone", perMinute+"3"))
	all := []string{"kept=", "changed=", "gone="}
	expect(t, "before", []string{ask(t, s, all...), ask(t, s, all...)},
		"OK OK:2 OK:2 OK:2", "OK OK:1 OK:1 OK:1")
	next := parse(t, limit("new", perMinute+"1")+limit("changed", perMinute+"60, burst: 2")+
		"- {key: kept, shadow_mode: true, rate_limit: {"+perMinute+"3}}\n")
	if err := s.SetConfig(next); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Second)
	expect(t, "after", []string{ask(t, s, "kept=", "changed=", "gone=", "new=")},
		"OK OK:0 OK:1 OK:- OK:0")
	if st := s.Stats(); st[1].Granted != 3 || st[1].Limit.Capacity != 2 || st[0].Granted != 1 {
		t.Errorf("%+v", st)
	}
	// A rule that comes back is new.
	if err := s.SetConfig(parse(t, limit("gone", perMinute+"3"))); err != nil {
		t.Fatal(err)
	}
	expect(t, "back", []string{ask(t, s, "gone=")}, "OK OK:2")
	if err := s.SetConfig(parse(t, limit("gone", perMinute+"0"))); err != nil {
		t.Fatal(err)
	}
	expect(t, "zero", []string{ask(t, s, "gone=")}, "OVER OVER:0")
}

// A rule that has no limit for a while keeps its buckets, and grants no fresh burst afterwards.
func TestBucketsWithoutLimit(t *testing.T) {
	limited := limit("k", perMinute+"2")
	s, _ := newService(t, limited)
	send(t, s, request(2, "k="))
	for _, c := range []struct{ meanwhile, want string }{
		{perMinute + "0", "OVER OVER:0"}, {"unlimited: true", "OK OK:4294967295"},
	} {
		if err := s.SetConfig(parse(t, limit("k", c.meanwhile))); err != nil {
			t.Fatal(err)
		}
		expect(t, c.meanwhile, []string{ask(t, s, "k=")}, c.want)
		if err := s.SetConfig(parse(t, limited)); err != nil {
			t.Fatal(err)
		}
		expect(t, "after "+c.meanwhile, []string{ask(t, s, "k=")}, "OVER OVER:0")
	}
}

// While requests flood the service and configurations change, each key is granted its burst, and no
// hit more (C1).
func TestBoundDuringChanges(t *testing.T) {
	const burst, changes, clients, requests = 50, 200, 4, 500
	texts := [2]string{
		limit("a", "unit: year, requests_per_unit: 1, burst: 50") + limit("b", perMinute+"1000000"),
		limit("b", perMinute+"1000000") + limit("a", "unit: year, requests_per_unit: 2, burst: 50"),
	}
	s, _ := newService(t, texts[0], func(c *Config) { c.Now = time.Now })
	var granted [3]atomic.Int64
	try := func(k int) bool {
		r := send(t, s, request(0, fmt.Sprintf("a=%d", k), "b="))
		if r.OverallCode != ratelimit.RateLimitResponse_OK {
			return false
		}
		granted[k].Add(1)
		return true
	}
	var done sync.WaitGroup
	for i := range uint64(clients) {
		done.Go(func() {
			random := rand.New(rand.NewPCG(i, 1))
			for range requests {
				try(random.IntN(len(granted)))
			}
		})
	}
	for i := range changes {
		if err := s.SetConfig(parse(t, texts[i%2])); err != nil {
			t.Error(err)
		}
	}
	done.Wait()
	for k := range granted {
		for try(k) {
		}
		if n := granted[k].Load(); n != burst {
			t.Errorf("key %d was granted %d, want %d", k, n, burst)
		}
	}
}

// Hits that leave less than a fifth of the burst are near the limit.
func TestNearLimit(t *testing.T) {
	for burst, near := range map[uint64]uint64{1: 1, 4: 1, 5: 1, 6: 2, 9: 2, 10: 2, 11: 3} {
		s, _ := newService(t, limit("a", perMinute+strconv.FormatUint(burst, 10)))
		for range burst + 1 {
			ask(t, s, "a=")
		}
		n := collector{s}.hits()[pathID{"d", "a"}]
		if want := [decisions]uint64{burst + 1, burst, near, 1, 0}; *n != want {
			t.Errorf("burst %d: %v, want %v", burst, *n, want)
		}
	}
}

// A counter never falls, whatever a call says that its hits are.
func TestCountsOfHugeHits(t *testing.T) {
	s, _ := newService(t, limit("a", perMinute+"1"))
	last := uint64(0)
	for _, hits := range []uint64{2, math.MaxUint64, 1 << 63, 1 << 63} {
		r := request(0, "a=")
		r.Descriptors[0].HitsAddend = wrapperspb.UInt64(hits)
		send(t, s, r)
		n := collector{s}.hits()[pathID{"d", "a"}][over]
		if n <= last {
			t.Errorf("%d hits: %d over the limit after %d", hits, n, last)
		}
		last = n
	}
}

// A million values do not take more memory than the bound on keys.
func TestBoundedKeys(t *testing.T) {
	const keys = 1000
	s, _ := newService(t, limit("k", perMinute+"2"), func(c *Config) {
		c.LimiterOptions = []tb.Option{tb.WithMaxKeys(keys)}
	})
	huge := strings.Repeat("x", 1<<20)
	for i := range 20 * keys {
		ask(t, s, fmt.Sprintf("k=%d", i))
	}
	for i := range 10 {
		ask(t, s, fmt.Sprintf("k=%s%d", huge, i))
	}
	expect(t, "long values", []string{ask(t, s, "k="+huge+"0"), ask(t, s, "k="+huge+"0")},
		"OK OK:0", "OVER OVER:0")
	if n := s.Stats()[0].Table.Keys; n > keys {
		t.Errorf("%d keys", n)
	}
}

// Paths in metrics that depend on requests are bounded, and no hit is lost.
func TestBoundedDetails(t *testing.T) {
	s, _ := newService(t, "- {key: k, detailed_metric: true, rate_limit: {"+perMinute+"1}}\n")
	for i := range 2 * maxDetails {
		ask(t, s, fmt.Sprintf("k=%d", i))
	}
	ask(t, s, "k="+strings.Repeat("x", maxDetail))
	if st := s.Stats()[0]; st.Granted != 2*maxDetails+1 {
		t.Errorf("%d hits counted", st.Granted)
	}
	n := 0
	s.state.Load().all(func(r *rule) { r.details.all(func(string, *ruleCounts) { n++ }) })
	if n != maxDetails {
		t.Errorf("%d paths", n)
	}
}
