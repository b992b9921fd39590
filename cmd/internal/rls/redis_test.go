package rls

import (
	"fmt"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/rueidis"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// shared makes a service keep its buckets in Redis.
func shared(t *testing.T, address, failure string) func(*Config) {
	t.Helper()
	return sharedBy(t, newClient(t, address), time.Minute, failure)
}

func sharedBy(
	t *testing.T, client rueidis.Client, timeout time.Duration, failure string,
) func(*Config) {
	t.Helper()
	store, err := redis.NewStore(client, storeOptions(timeout, failure)...)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Now, c.Store, c.StoreErrors = time.Now, store, failure == "error" }
}

func newClient(t *testing.T, address string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true,
	})
	if client == nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Services with one Redis share their buckets, also after a reload.
func TestRedis(t *testing.T) {
	address := redistest.Start(t).Addr
	tree := limit("a", "unit: year, requests_per_unit: 3") +
		limit("b", "unit: year, requests_per_unit: 1")
	one, _ := newService(t, tree, shared(t, address, "error"))
	two, _ := newService(t, tree, shared(t, address, "error"))
	expect(t, "shared", []string{
		ask(t, one, "a=x", "b=x"), ask(t, two, "a=x", "b=x"), ask(t, two, "a=x"), ask(t, one, "a=y"),
	}, "OK OK:2 OK:0", "OVER OK:2 OVER:0", "OK OK:1", "OK OK:2")
	if err := one.SetConfig(parse(t, limit("a", "unit: year, requests_per_unit: 2"))); err != nil {
		t.Fatal(err)
	}
	expect(t, "reload", []string{ask(t, one, "a=x"), ask(t, one, "a=x")}, "OK OK:0", "OVER OVER:0")
}

// What is known to be refused costs no command, however many descriptors a request has.
func TestCommandsOfRefusedRequests(t *testing.T) {
	tree := limit("a", "unit: year, requests_per_unit: 1") +
		limit("b", "unit: year, requests_per_unit: 9") +
		"- {key: s, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 9}}\n" +
		"- {key: q, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 9}}\n"
	address := redistest.Start(t).Addr
	for _, others := range [][]string{nil, {"b="}, {"b=", "b="}, {"b=", "s=", "q="}} {
		s, _ := newService(t, tree, shared(t, address, "error"))
		r := request(0, append([]string{fmt.Sprint("a=", len(others), others)}, others...)...)
		for i := range 201 {
			if send(t, s, r); i >= 100 {
				r.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
			}
		}
		commands := uint64(0)
		s.state.Load().all(func(r *rule) {
			commands = r.buckets.StoreLimiter.(*redis.Limiter).Stats().Commands // of all rules
		})
		if commands > 20 {
			t.Errorf("%q: %d commands for 200 refused requests", others, commands)
		}
	}
}

// Rules in Redis have metrics of their own, also if a domain or a key has a space.
func TestMetricsOfRulesInRedis(t *testing.T) {
	s, _ := newService(t, limit("b c", perMinute+"1"), shared(t, redistest.Start(t).Addr, "error"))
	all, err := config.Parse([]config.File{
		{Name: "1", Text: "domain: a\ndescriptors:\n" + limit("b c", perMinute+"1")},
		{Name: "2", Text: "domain: a b\ndescriptors:\n" + limit("c", perMinute+"1")},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetConfig(all); err != nil {
		t.Fatal(err)
	}
	if _, err := newMetrics(s, func() uint64 { return 0 }).Gather(); err != nil {
		t.Error(err)
	}
}

// After a reload, the new rate pays a debt, also if Envoy only asks with 0 hits. It pays the three
// hits in three microseconds, and a command takes longer. The old rate pays a hit in four months.
func TestTheNewRatePaysADebt(t *testing.T) {
	tree := func(n int, unit string) string {
		return limit("a", fmt.Sprintf("unit: %s, requests_per_unit: %d, burst: 3, debt: true", unit, n))
	}
	s, _ := newService(t, tree(3, "year"), shared(t, redistest.Start(t).Addr, "error"))
	r := request(3, "a=")
	send(t, s, r)
	send(t, s, r)
	if err := s.SetConfig(parse(t, tree(1_000_000, "second"))); err != nil {
		t.Fatal(err)
	}
	r.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	for range 1000 {
		if send(t, s, r).OverallCode == ratelimit.RateLimitResponse_OK {
			return
		}
	}
	t.Error("the debt is not paid")
}

// Without Redis, the flag decides: an error, a grant or a refusal. A shadow rule has no error.
func TestRedisFailure(t *testing.T) {
	tree := limit("a", perMinute+"3") + limit("b", perMinute+"3") +
		"- {key: s, shadow_mode: true, rate_limit: {" + perMinute + "1}}\n"
	for _, c := range []struct{ failure, want string }{
		{"allow", "OK OK:0; OK OK:0 OK:0"}, {"refuse", "OVER OVER:0; OVER OVER:0 OVER:0"},
	} {
		s, _ := newService(t, tree, shared(t, "127.0.0.1:1", c.failure))
		expect(t, c.failure, []string{ask(t, s, "a="), ask(t, s, "a=", "b=")}, c.want)
	}
	s, _ := newService(t, tree, shared(t, "127.0.0.1:1", "error"))
	for _, d := range [][]string{{"a="}, {"a=", "b="}, {"a=", "s="}} {
		if _, err := s.ShouldRateLimit(t.Context(), request(0, d...)); status.Code(
			err) != codes.Unavailable {
			t.Errorf("%q: %v", d, err)
		}
	}
	expect(t, "shadow", []string{ask(t, s, "s=")}, "OK OK:0")
}

// A request waits once for a server that does not answer, and not for each of its descriptors.
func TestLateRedis(t *testing.T) {
	tree, names := "", []string(nil)
	for i := range 9 {
		tree += fmt.Sprintf("- {key: k%d, shadow_mode: %t, quota_mode: %t, rate_limit: {%s9}}\n",
			i, i > 5, i < 3, perMinute)
		names = append(names, fmt.Sprintf("k%d=", i))
	}
	r := request(1, names...)
	for _, d := range r.Descriptors[3:5] {
		d.HitsAddend = wrapperspb.UInt64(0)
	}
	for failure, want := range map[string]ratelimit.RateLimitResponse_Code{
		"allow": ratelimit.RateLimitResponse_OK, "refuse": ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		client := newClient(t, redistest.Start(t).Addr)
		s, _ := newService(t, tree, sharedBy(t, client, 20*time.Millisecond, failure))
		if err := client.Do(t.Context(), client.B().Arbitrary("CLIENT", "PAUSE",
			"600000").Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if got := send(t, s, r).OverallCode; got != want {
			t.Errorf("%s: %v", failure, got)
		}
		waits := uint64(0)
		s.state.Load().all(func(r *rule) {
			waits += r.buckets.StoreLimiter.(*redis.Limiter).Stats().Failed[redis.CauseTimeout]
		})
		if waits != 1 {
			t.Errorf("%s: %d waits", failure, waits)
		}
	}
}
