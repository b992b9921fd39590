package rls

import (
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// A gateway says what a request costs before it, as a weight: Envoy Gateway for the descriptor, and
// Contour and Istio also for all. Or it reports the cost after the response: agentgateway sends no
// hits before, Envoy AI Gateway 0, and Envoy Gateway 0 or 1.
var (
	weightForms = []string{"descriptor", "request"}
	reportForms = []string{"none", "0", "1"}
)

// pass sends what a gateway sends of a request that costs n hits: to one service before it, and to
// another after the response. It reports whether the request passes.
func pass(t *testing.T, form, key string, n uint32, asked, told *Service) bool {
	r := request(0, key)
	hits := map[string]uint64{"descriptor": uint64(n), "0": 0, "1": 1}
	if own, ok := hits[form]; ok {
		r.Descriptors[0].HitsAddend = wrapperspb.UInt64(own)
	} else if form == "request" {
		r.HitsAddend = n
	}
	passes := send(t, asked, r).OverallCode == ratelimit.RateLimitResponse_OK
	if passes && form != "descriptor" && form != "request" {
		r.Descriptors[0].HitsAddend = wrapperspb.UInt64(uint64(n))
		send(t, told, r)
	}
	return passes
}

// Of 10,000 hits, 3 weights of 3,000 are granted, which leaves 1,000, and 4 requests whose 3,000
// are reported, which leaves a debt. Each call may reach another service with the same Redis, which
// may have been started in between.
func TestGateways(t *testing.T) {
	address := redistest.Start(t).Addr
	for _, store := range []string{"memory", "redis"} {
		for i, form := range append(weightForms, reportForms...) {
			weights := i < len(weightForms)
			tree := limit(form, "unit: day, requests_per_unit: 10000")
			next := func(before *Service) *Service {
				set := func(c *Config) { c.Weights = weights }
				if store == "redis" {
					before, _ = newService(t, tree, shared(t, address, "error"), set)
				} else if before == nil {
					before, _ = newService(t, tree, set)
				}
				return before
			}
			passed, asked := 0, next(nil)
			for range 50 {
				told := next(asked)
				if pass(t, form, form+"=", 3000, asked, told) {
					passed++
				}
				asked = told
			}
			want, left := 4, "OVER OVER:0"
			if weights {
				want, left = 3, "OK OK:999"
			}
			if got := ask(t, asked, form+"="); passed != want || got != left {
				t.Errorf("%s, %s: %d pass and then %s, want %d and %s", store, form, passed, got, want, left)
			}
		}
	}
}

// At a limit of 10 hits a second, a client is granted what the limit pays, however often it asks in
// 8 s. A rule has one line in the log if several hits come on a key that is in debt by such hits,
// unless the file says what they are.
func TestHitsOfAClient(t *testing.T) {
	for _, c := range []struct {
		forms      []string
		hits       uint32
		often      int // in a second
		rest       string
		weights    bool
		few, many  int
		linesOfLog int
	}{
		{weightForms, 5, 2, "", false, 16, 16, 0},
		{weightForms, 5, 3, "", false, 3, 3, 1},
		{weightForms, 5, 3, ", debt: true", false, 3, 3, 0},
		{weightForms, 5, 3, ", debt: true", true, 3, 3, 0},
		{weightForms, 5, 3, ", debt: false", false, 17, 17, 0},
		{weightForms, 5, 2, "", true, 16, 16, 0},
		{weightForms, 5, 4, "", true, 17, 17, 0},
		{weightForms, 5, 20, "", true, 17, 17, 0},
		{weightForms, 1, 100, "", false, 89, 89, 0},
		{weightForms, 11, 3, "", true, 0, 0, 0},
		{reportForms, 5, 3, "", false, 15, 18, 0},
		{reportForms, 5, 20, "", false, 15, 18, 0},
	} {
		for _, form := range c.forms {
			log := testkit.NewTranscript()
			tree := limit("a", "unit: second, requests_per_unit: 10"+c.rest)
			s, now := newService(t, tree, func(s *Config) { s.Weights, s.Log = c.weights, log.Logger() })
			granted := map[string]int{}
			for range 8 * c.often {
				for _, key := range []string{"a=1", "a=2"} {
					if pass(t, form, key, c.hits, s, s) {
						granted[key]++
					}
				}
				now.Advance(time.Second / time.Duration(c.often))
				if err := s.SetConfig(parse(t, tree)); err != nil { // the log has no second line then
					t.Fatal(err)
				}
			}
			n := granted["a=1"]
			if n < c.few || n > c.many || n != granted["a=2"] || len(log.Lines) != c.linesOfLog {
				t.Errorf("%s, %+v: %v granted, %d lines", form, c, granted, len(log.Lines))
			}
		}
	}
}
