//go:build !race

// The race detector makes sync.Pool drop what it is given.

package httplimit

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// responder is a ResponseWriter that allocates nothing.
type responder struct {
	header http.Header
	status int
}

func (w *responder) Header() http.Header         { return w.header }
func (w *responder) WriteHeader(status int)      { w.status = status }
func (w *responder) Write(b []byte) (int, error) { return len(b), nil }

const twoRules = `{"rules": [
	{"name": "address", "limit_keys": ["ip:address"], "algorithm": "token_bucket",
	 "algorithm_config": {"tokens_per_second": 1e9, "burst": 1073741824}},
	{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
	 "algorithm_config": {"tokens_per_second": %s, "burst": %s}}]}`

const settledRule = `{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm_config":
	{"tokens_per_second": 1e9, "burst": 1073741824, "default_cost": 10,
	"cost_source": "response:header:x-usage"}}`

func reportOne(w http.ResponseWriter, _ *http.Request) { w.Header()["X-Usage"] = usageOfOne }

var usageOfOne = []string{"1"}

// BenchmarkDecideClients measures the rules without header, context and copy of the request, on
// several processors with different clients, which should not slow each other down.
func BenchmarkDecideClients(b *testing.B) {
	l := mustNew(b, sprintf(twoRules, "1e9", "1073741824"))
	var clients atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		client := sprint(clients.Add(1))
		r := httptest.NewRequest(http.MethodGet, "/v1/things", nil)
		r.RemoteAddr = "192.0.2." + client + ":1234"
		r.Header.Set("X-Api-Key", client)
		for pb.Next() {
			c := l.begin(r)
			if c.decide() != granted {
				b.Error("refused")
			}
			c.end()
		}
	})
}

func TestAllocationsAreAtMost10(t *testing.T) {
	for name, l := range map[string]*Limiter{
		"granted": mustNew(t, sprintf(twoRules, "1e9", "1073741824")),
		"refused": mustNew(t, sprintf(twoRules, "0.000001", "1")),
		"settled": mustNew(t, settledRule),
	} {
		h := l.Middleware(http.HandlerFunc(reportOne))
		r := request("X-Api-Key: 0123456789abcdef0123456789abcdef")
		w := &responder{}
		n := testing.AllocsPerRun(100, func() {
			w.header = make(http.Header)
			h.ServeHTTP(w, r)
		})
		if n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Take allocates nothing for a granted request, and only the Refusal and its texts for another.
func TestAllocationsOfTake(t *testing.T) {
	r := request("X-Api-Key: 0123456789abcdef0123456789abcdef")
	for _, c := range []struct {
		burst string
		most  float64
	}{{"1073741824", 0}, {"1", 6}} {
		l := mustNew(t, sprintf(twoRules, "1e-6", c.burst))
		if n := testing.AllocsPerRun(100, func() { l.Take(nil, r) }); n > c.most {
			t.Errorf("with a burst of %s: %v allocations, want at most %v", c.burst, n, c.most)
		}
	}
}
