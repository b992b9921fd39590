package rls

import (
	"fmt"
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
// are reported, which leaves a debt. With Redis, each call reaches another service.
func TestGateways(t *testing.T) {
	address := redistest.Start(t).Addr
	for i, form := range append(weightForms, reportForms...) {
		weights, want := i < len(weightForms), "4 pass, OVER OVER:0"
		if weights {
			want = "3 pass, OK OK:999"
		}
		set := func(c *Config) { c.Weights = weights }
		tree := limit(form, "unit: day, requests_per_unit: 10000")
		for _, store := range []string{"memory", "Redis"} {
			s, _ := newService(t, tree, set)
			next := func() *Service {
				if store == "Redis" {
					s, _ = newService(t, tree, set, shared(t, address, "error"))
				}
				return s
			}
			passed := 0
			for range 50 {
				if pass(t, form, form+"=", 3000, next(), next()) {
					passed++
				}
			}
			got := fmt.Sprintf("%d pass, %s", passed, ask(t, s, form+"="))
			expect(t, store+", "+form, []string{got}, want)
		}
	}
}

// At a limit of 10 hits a second, a client is granted what the limit pays, however often it asks in
// 8 s. If nothing but several hits comes, a rule has one line in the log at the first refusal,
// unless the file says what they are.
func TestHitsOfAClient(t *testing.T) {
	for _, c := range []struct {
		forms      []string
		hits       uint32
		often      float64 // in a second
		rest       string
		weights    bool
		few, many  int
		linesOfLog int
	}{
		{weightForms, 5, 2, "", false, 16, 16, 0},
		{weightForms, 5, 2.25, "", false, 9, 9, 1},
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
			for range int(8 * c.often) {
				for _, key := range []string{"a=1", "a=2"} {
					if pass(t, form, key, c.hits, s, s) {
						granted[key]++
					} else if c.linesOfLog > len(log.Lines) {
						t.Errorf("%s, %+v: no line at the first refusal", form, c)
					}
				}
				now.Advance(time.Duration(float64(time.Second) / c.often))
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

// A debt is at most two bursts, also if the rate supplies a burst in a part of a second.
func TestDebtIsBoundedInBursts(t *testing.T) {
	s, now := newService(t, limit("a", "unit: second, requests_per_unit: 1000, burst: 10"))
	for range 100 {
		send(t, s, request(10, "a="))
	}
	now.Advance(20 * time.Millisecond) // pays for two bursts
	expect(t, "in debt", []string{ask(t, s, "a=")}, "OVER OVER:0")
	now.Advance(time.Millisecond)
	expect(t, "two bursts later", []string{ask(t, s, "a=")}, "OK OK:0")
}
