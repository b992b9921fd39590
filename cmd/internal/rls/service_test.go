package rls

import (
	"math"
	"strings"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typ "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const perMinute = "unit: minute, requests_per_unit: "

// A bucket grants its burst, and then the rate. The status says what is left and until when.
func TestBucket(t *testing.T) {
	s, now := newService(t, limit("k", perMinute+"2, name: n"))
	a := func() string { return ask(t, s, "k=a") }
	expect(t, "burst", []string{a(), a(), a(), ask(t, s, "k=b")},
		"OK OK:1", "OK OK:0", "OVER OVER:0", "OK OK:1")
	st := send(t, s, request(0, "k=a")).Statuses[0]
	if l := st.CurrentLimit; l.Name != "n" || l.RequestsPerUnit != 2 ||
		l.Unit != ratelimit.RateLimitResponse_RateLimit_MINUTE {
		t.Error(l)
	}
	if d := st.DurationUntilReset.AsDuration(); d != 30*time.Second {
		t.Errorf("refused: %v until a token", d)
	}
	now.Advance(30 * time.Second)
	st = send(t, s, request(0, "k=a")).Statuses[0]
	if d := st.DurationUntilReset.AsDuration(); d != time.Minute ||
		st.Code != ratelimit.RateLimitResponse_OK {
		t.Errorf("granted: %v until the bucket is full", d)
	}
}

// A burst of its own, and hits of several tokens or a fraction.
func TestBurstAndCost(t *testing.T) {
	s, _ := newService(t, limit("b", perMinute+"1, burst: 3")+
		limit("c", perMinute+"10, cost: 4")+limit("f", perMinute+"1, cost: 0.5"))
	for want, k := range map[string]string{
		"OK OK:2; OK OK:1; OK OK:0; OVER OVER:0":     "b=x",
		"OK OK:1; OK OK:0; OVER OVER:0; OVER OVER:0": "c=x",
		"OK OK:0; OK OK:0; OVER OVER:0; OVER OVER:0": "f=x",
	} {
		expect(t, k, []string{ask(t, s, k), ask(t, s, k), ask(t, s, k), ask(t, s, k)}, want)
	}
}

// A rule with debt takes hits that its bucket lacks, as for a cost that is known after the
// response. Until they are paid, it refuses a check.
func TestDebt(t *testing.T) {
	s, now := newService(t, limit("a", perMinute+"60, debt: true")+limit("b", perMinute+"9"))
	check := func() string {
		r := request(0, "a=")
		r.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
		return short(send(t, s, r))
	}
	report := func(hits uint32, descriptors ...string) string {
		return short(send(t, s, request(hits, descriptors...)))
	}
	expect(t, "before", []string{check(), report(50, "a=")}, "OK OK:60", "OK OK:10")
	expect(t, "debt", []string{
		report(30, "a="), report(1, "a=", "b="),
	}, "OVER OVER:0", "OVER OVER:0 OK:9")
	expect(t, "refused by debt alone", []string{report(9, "b=")}, "OK OK:0")
	now.Advance(21 * time.Second)
	expect(t, "not paid", []string{check()}, "OVER OVER:0")
	now.Advance(time.Second)
	expect(t, "paid", []string{check()}, "OK OK:1")
	expect(t, "more than a burst", []string{report(math.MaxUint32, "a="), check()}, "OVER OVER:0",
		"OVER OVER:0")
}

// A refused request takes the hits that it owes, unless a rule without debt refuses it, too.
func TestOwedHitsOfARefusedRequest(t *testing.T) {
	const withDebt = "- {key: b, rate_limit: {" + perMinute + "100, debt: true}"
	none, weight := limit("c", perMinute+"0"), limit("c", perMinute+"9, debt: false")
	tests := []struct {
		name, rules string
		others      []string
		check       bool // the rule that refuses has 0 hits
		left        string
	}{
		{"a rule", withDebt + "}\n", nil, false, "OK OK:29"},
		{"a rule beside 0 hits", withDebt + "}\n", nil, true, "OK OK:29"},
		{"a quota", withDebt + ", quota_mode: true}\n", nil, false, "OK OK:29"},
		{"a rule in shadow mode", withDebt + ", shadow_mode: true}\n", nil, false, "OK OK:29"},
		{"beside none", withDebt + "}\n" + none, []string{"c="}, false, "OK OK:29; OVER OVER:0"},
		{
			"beside none, as a weight", withDebt + "}\n" + limit("c", perMinute+"0, debt: false"),
			[]string{"c="}, false, "OK OK:99; OVER OVER:0",
		},
		{"beside a weight", withDebt + "}\n" + weight, []string{"c="}, false, "OK OK:99; OK OK:8"},
		{"beside that and 0 hits", withDebt + "}\n" + weight, []string{"c="}, true, "OK OK:99; OK OK:8"},
		{
			"beside a weight in shadow mode",
			withDebt + "}\n- {shadow_mode: true, " + limit("c", perMinute+"90, debt: false")[3:],
			[]string{"c="}, false, "OK OK:29; OK OK:89",
		},
		{"beside a quota of none", withDebt + "}\n- {quota_mode: true, " + none[3:],
			[]string{"c="}, false, "OK OK:29; OVER OVER:0"},
		{
			"two quotas beside one of none", "- {quota_mode: true, " +
				limit("b", perMinute+"9, debt: true")[3:] + "- {quota_mode: true, " + none[3:],
			[]string{"b=", "c="}, false, "OVER OVER:0; OVER OVER:0; OVER OVER:0",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newService(t, limit("a", "unit: year, requests_per_unit: 10, debt: true")+tt.rules)
			for range 3000 { // until the debt is as deep as it can be
				send(t, s, request(10, "a="))
			}
			r := request(70, append([]string{"a=", "b="}, tt.others...)...)
			if tt.check {
				r.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
			}
			if got := short(send(t, s, r)); !strings.HasPrefix(got, "OVER ") {
				t.Errorf("%s, want a refusal", got)
			}
			left := []string{ask(t, s, "b=")}
			for _, other := range tt.others {
				left = append(left, ask(t, s, other))
			}
			expect(t, "afterwards", left, tt.left)
		})
	}
}

// Two descriptors with one bucket take twice. A hit that a report refuses is given back.
func TestOneBucketTwice(t *testing.T) {
	s, now := newService(t, limit("a", perMinute+"3"))
	expect(t, "twice", []string{ask(t, s, "a=", "a="), ask(t, s, "a=", "a="), ask(t, s, "a=")},
		"OK OK:2 OK:1", "OVER OK:1 OVER:0", "OK OK:0")
	r := request(3, "a=x", "a=x")
	r.Descriptors[0].HitsAddend = wrapperspb.UInt64(1)
	send(t, s, r)
	now.Advance(20 * time.Second)
	expect(t, "after a report", []string{ask(t, s, "a=x")}, "OK OK:0")
}

// 0 hits of a request are 1. 0 hits of a descriptor, and negative ones, take nothing, and are
// refused if a hit would be.
func TestHits(t *testing.T) {
	s, _ := newService(t, limit("a", perMinute+"5")+limit("b", perMinute+"5")+
		limit("c", "unit: year, requests_per_unit: 1, burst: 1073741824, cost: 1e-20"))
	own := func(key string, hits uint64, negative bool) *ratelimit.RateLimitResponse {
		r := request(3, key)
		r.Descriptors[0].HitsAddend = wrapperspb.UInt64(hits)
		r.Descriptors[0].IsNegativeHits = negative
		return send(t, s, r)
	}
	expect(t, "hits", []string{
		short(own("a=", 0, false)), short(own("a=", 2, false)), short(own("a=", 1, true)),
		short(send(t, s, request(3, "a="))), short(own("a=", 0, false)),
		short(own("a=", math.MaxUint64, false)), short(send(t, s, request(math.MaxUint32, "a="))),
	}, "OK OK:5", "OK OK:3", "OK OK:3", "OK OK:0", "OVER OVER:0", "OVER OVER:0", "OVER OVER:0")
	if d := own("b=", 6, false).Statuses[0].DurationUntilReset; d.AsDuration() != 24*time.Hour {
		t.Errorf("hits above the burst have a wait of %v", d.AsDuration())
	}
	if d := own("c=", 0, false).Statuses[0].DurationUntilReset; d.AsDuration() > 365*24*time.Hour {
		t.Errorf("a bucket that has 2³⁰ tokens for 10²⁰ hits each is full after %v", d.AsDuration())
	}
}

func TestUnlimitedUnmatchedAndUnknown(t *testing.T) {
	s, _ := newService(t, limit("free", "unlimited: true")+limit("none", perMinute+"0")+
		limit("a", perMinute+"1"))
	expect(t, "answers", []string{
		ask(t, s, "free=x"), ask(t, s, "other=x"), ask(t, s, "none=x"), ask(t, s, "none=x", "a="),
		ask(t, s, "free=x", "a="),
	}, "OK OK:4294967295", "OK OK:-", "OVER OVER:0", "OVER OVER:0 OK:-", "OK OK:4294967295 OK:0")
	r := request(0, "a=")
	r.Domain = "unknown"
	expect(t, "domain", []string{short(send(t, s, r))}, "OK OK:-")
	if n := s.counts.unknownDomains.Load(); n != 1 {
		t.Errorf("%d unknown domains", n)
	}
}

// A rule in shadow mode refuses nothing, takes what enforcement would take, and is counted. It is
// not asked about a request that another rule refuses.
func TestShadowMode(t *testing.T) {
	s, _ := newService(t, "- {key: s, shadow_mode: true, rate_limit: {"+perMinute+"1}}\n"+
		limit("a", perMinute+"2"))
	expect(t, "shadow", []string{
		ask(t, s, "s=", "a="), ask(t, s, "s=", "a="), ask(t, s, "s=", "a="), ask(t, s, "s="),
	}, "OK OK:0 OK:1", "OK OK:0 OK:0", "OVER OK:- OVER:0", "OK OK:0")
	look := request(0, "s=")
	look.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	if d := send(t, s, look).Statuses[0].DurationUntilReset; d.AsDuration() != time.Minute {
		t.Errorf("a hit in shadow mode has to wait %v", d)
	}
	st := s.Stats()[0]
	if st.ShadowGranted != 1 || st.ShadowRefused != 2 || s.Stats()[1].Refused != 1 {
		t.Errorf("%+v", st)
	}
	s, _ = newService(t, "- {key: s, shadow_mode: true, rate_limit: {"+perMinute+"9}}\n"+
		limit("a", perMinute+"1"))
	expect(t, "refused by another rule", []string{
		ask(t, s, "s=", "a="), ask(t, s, "s=", "a="), ask(t, s, "s="),
	}, "OK OK:8 OK:0", "OVER OK:- OVER:0", "OK OK:7")
	s, _ = newService(t, limit("a", perMinute+"1"), func(c *Config) { c.Shadow = true })
	expect(t, "all in shadow", []string{ask(t, s, "a="), ask(t, s, "a=")}, "OK OK:0", "OK OVER:0")
	// A request has one outcome.
	if n := &s.counts; n.allowed.Load() != 1 || n.shadowed.Load() != 1 || n.refused.Load() != 0 {
		t.Errorf("%d allowed, %d in shadow, %d refused, want 1, 1 and none",
			n.allowed.Load(), n.shadowed.Load(), n.refused.Load())
	}
}

// A request is refused by quotas only if all of them refuse it.
func TestQuotaMode(t *testing.T) {
	q := func(key, n string) string {
		return "- {key: " + key + ", quota_mode: true, rate_limit: {" + perMinute + n + "}}\n"
	}
	s, _ := newService(t, q("q1", "1")+q("q2", "2")+limit("a", perMinute+"3"))
	all := []string{"q1=", "q2=", "a="}
	expect(t, "quotas", []string{
		ask(t, s, all...), ask(t, s, all...), ask(t, s, all...), ask(t, s, "a="), ask(t, s, all...),
	}, "OK OK:0 OK:1 OK:2", "OK OVER:0 OK:0 OK:1", "OVER OVER:0 OVER:0 OK:1", "OK OK:0",
		"OVER OK:- OK:- OVER:0")
	s, _ = newService(t, q("q", "1")+
		"- {key: s, quota_mode: true, shadow_mode: true, rate_limit: {"+perMinute+"1}}\n")
	expect(t, "a quota in shadow mode", []string{ask(t, s, "q=", "s="), ask(t, s, "q=", "s=")},
		"OK OK:0 OK:0", "OK OVER:0 OK:0")
	s, now := newService(t,
		"- {key: q, quota_mode: true, rate_limit: {"+perMinute+"60, debt: true}}\n")
	send(t, s, request(60, "q="))
	send(t, s, request(30, "q="))
	now.Advance(29 * time.Second)
	expect(t, "a quota with debt", []string{ask(t, s, "q=")}, "OVER OVER:0")
}

// With Config.Quota each rule is a quota.
func TestQuotaModeOfAllRules(t *testing.T) {
	s, _ := newService(t, limit("a", perMinute+"1")+limit("b", perMinute+"2"),
		func(c *Config) { c.Quota = true })
	all := []string{"a=", "b="}
	expect(t, "quotas", []string{ask(t, s, all...), ask(t, s, all...), ask(t, s, all...)},
		"OK OK:0 OK:1", "OK OVER:0 OK:0", "OVER OVER:0 OVER:0")
}

// A rule that is named in replaces is not asked. A rule that is replaced replaces others, too.
func TestReplaces(t *testing.T) {
	s, _ := newService(t, limit("a", perMinute+"1, name: a")+
		limit("b", perMinute+"2, name: b, replaces: [{name: a}]")+
		limit("c", perMinute+"3, replaces: [{name: b}]")+
		limit("free", "unlimited: true, name: f, replaces: [{name: a}]")+
		limit("g", perMinute+"1, replaces: [{name: f}]"))
	expect(t, "replaces", []string{
		ask(t, s, "a=", "b="), ask(t, s, "a=", "b=", "c="), ask(t, s, "a=", "free="),
		ask(t, s, "free=", "g="), ask(t, s, "a="), ask(t, s, "a="),
	}, "OK OK:- OK:1", "OK OK:- OK:- OK:2", "OK OK:- OK:4294967295", "OK OK:4294967295 OK:0",
		"OK OK:0", "OVER OVER:0")
}

// bring returns a request whose descriptor brings its own limit.
func bring(n uint32, u typ.RateLimitUnit, text string) *ratelimit.RateLimitRequest {
	r := request(0, text)
	r.Descriptors[0].Limit = &envoy.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: u}
	return r
}

// A descriptor may bring its own limit, in a domain that is known.
func TestOverride(t *testing.T) {
	s, now := newService(t, limit("a", perMinute+"1"))
	hour := typ.RateLimitUnit_HOUR
	expect(t, "override", []string{
		short(send(t, s, bring(2, hour, "a=x"))), short(send(t, s, bring(2, hour, "a=x"))),
		short(send(t, s, bring(2, hour, "a=x"))), short(send(t, s, bring(2, hour, "a=y"))),
		short(send(t, s, bring(2, hour, "none=y"))), short(send(t, s, bring(0, hour, "a=y"))),
		ask(t, s, "a=x"),
	}, "OK OK:1", "OK OK:0", "OVER OVER:0", "OK OK:1", "OK OK:1", "OVER OVER:0", "OK OK:0")
	_, err := s.ShouldRateLimit(t.Context(), bring(1, typ.RateLimitUnit_UNKNOWN, "a="))
	if status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	for n := range uint32(maxOverrides) {
		_, _ = s.ShouldRateLimit(t.Context(), bring(n, hour, "a="))
	}
	if _, err := s.ShouldRateLimit(t.Context(), bring(9999, hour, "a=")); status.Code(
		err) != codes.InvalidArgument || !strings.Contains(err.Error(), "different limits") {
		t.Error(err)
	}
	if got := short(send(t, s, bring(2, hour, "a=x"))); got != "OVER OVER:0" {
		t.Errorf("a known limit: %s", got)
	}
	// A limit makes room when its buckets are full, which is an hour after its last request.
	// The limit of 0 has no buckets.
	now.Advance(time.Hour)
	send(t, s, bring(2, hour, "a=x"))
	send(t, s, bring(9998, hour, "a="))
	if _, err := s.ShouldRateLimit(t.Context(), bring(9999, hour, "a=")); err == nil {
		t.Error("a limit is forgotten before its buckets are full")
	}
	now.Advance(time.Second)
	for n := range uint32(maxOverrides - 2) {
		send(t, s, bring(10_000+n, hour, "a="))
	}
	if got := short(send(t, s, bring(2, hour, "a=x"))); got != "OK OK:0" {
		t.Errorf("a limit that was brought since: %s", got)
	}
	if _, err := s.ShouldRateLimit(t.Context(), bring(9999, hour, "a=")); err == nil {
		t.Error("a limit is forgotten before its buckets are full")
	}
}

// Hits that are reported put the buckets of a limit into debt. The limit makes room when they are
// paid and the buckets are full.
func TestOverrideInDebtIsKept(t *testing.T) {
	s, now := newService(t, limit("a", perMinute+"1"))
	report := func(n uint32, hits uint64) error {
		r := bring(n, typ.RateLimitUnit_HOUR, "a=x")
		r.Descriptors[0].HitsAddend = wrapperspb.UInt64(hits)
		_, err := s.ShouldRateLimit(t.Context(), r)
		return err
	}
	for n := range uint32(maxOverrides) {
		for _, hits := range []uint64{0, uint64(n + 2), uint64(n + 2), uint64(n + 2)} {
			if err := report(n+2, hits); err != nil { // in the end there is a debt for two hours
				t.Fatal(err)
			}
		}
	}
	now.Advance(3 * time.Hour)
	if report(9999, 1) == nil {
		t.Error("a limit is forgotten before its buckets are full")
	}
	now.Advance(time.Second)
	if err := report(9999, 1); err != nil {
		t.Error(err)
	}
}

// A request that is out of bounds has an error, and takes nothing.
func TestInvalidRequests(t *testing.T) {
	s, _ := newService(t, limit("a", perMinute+"1"))
	many := make([]string, maxDescriptors+1)
	for i := range many {
		many[i] = "a="
	}
	nowhere := request(0, "a=")
	nowhere.Domain = ""
	own := request(0, strings.Repeat("a=,", maxEntries)+"a=")
	own.Descriptors[0].Limit = &envoy.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 1, Unit: typ.RateLimitUnit_DAY,
	}
	for _, r := range []*ratelimit.RateLimitRequest{request(0), request(0, many...), nowhere, own} {
		if _, err := s.ShouldRateLimit(t.Context(), r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%.60v: %v", r, err)
		}
	}
	holes := &ratelimit.RateLimitRequest{Domain: "d", Descriptors: []*envoy.RateLimitDescriptor{
		{}, {Entries: []*envoy.RateLimitDescriptor_Entry{{}}}, {Entries: nil, HitsAddend: nil},
	}}
	expect(t, "empty", []string{short(send(t, s, holes)), ask(t, s, "a=")},
		"OK OK:- OK:- OK:-", "OK OK:0")
	if n := s.counts.invalid.Load(); n != 4 {
		t.Errorf("%d invalid requests", n)
	}
}
