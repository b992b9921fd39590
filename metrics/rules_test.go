package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func newLimiter(t *testing.T, rules ...httplimit.Rule) *httplimit.Limiter {
	t.Helper()
	l, err := httplimit.New(httplimit.Rules(rules...))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCollectsRules(t *testing.T) {
	once := tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}
	api := newLimiter(t, httplimit.Rule{Name: "a", Limit: once})
	web := newLimiter(t, httplimit.Rule{Name: "a", Limit: once},
		httplimit.Rule{Name: "trial", Shadow: true, Limit: once})
	handler := api.Middleware(http.NotFoundHandler())
	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	registry := prometheus.NewPedanticRegistry()
	for name, l := range map[string]*httplimit.Limiter{"api": api, "web": web} {
		if err := registry.Register(Rules(name, l)); err != nil {
			t.Fatal(err)
		}
	}
	err := testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tb_keys Keys that have a bucket.
		# TYPE tb_keys gauge
		tb_keys{limiter="api",rule="a",set=""} 1
		tb_keys{limiter="web",rule="a",set=""} 0
		tb_keys{limiter="web",rule="trial",set=""} 0
		# HELP tb_requests_total Requests that the rule granted, refused with 429 or rejected with 400. A request that only other `+
		`rules refused is not counted.
		# TYPE tb_requests_total counter
		tb_requests_total{limiter="api",outcome="granted",rule="a",set=""} 1
		tb_requests_total{limiter="api",outcome="refused",rule="a",set=""} 2
		tb_requests_total{limiter="api",outcome="rejected",rule="a",set=""} 0
		tb_requests_total{limiter="api",outcome="shadow_granted",rule="a",set=""} 0
		tb_requests_total{limiter="api",outcome="shadow_refused",rule="a",set=""} 0
		tb_requests_total{limiter="web",outcome="granted",rule="a",set=""} 0
		tb_requests_total{limiter="web",outcome="granted",rule="trial",set=""} 0
		tb_requests_total{limiter="web",outcome="refused",rule="a",set=""} 0
		tb_requests_total{limiter="web",outcome="rejected",rule="a",set=""} 0
		tb_requests_total{limiter="web",outcome="refused",rule="trial",set=""} 0
		tb_requests_total{limiter="web",outcome="rejected",rule="trial",set=""} 0
		tb_requests_total{limiter="web",outcome="shadow_granted",rule="a",set=""} 0
		tb_requests_total{limiter="web",outcome="shadow_granted",rule="trial",set=""} 0
		tb_requests_total{limiter="web",outcome="shadow_refused",rule="a",set=""} 0
		tb_requests_total{limiter="web",outcome="shadow_refused",rule="trial",set=""} 0
	`), "tb_keys", "tb_requests_total")
	if err != nil {
		t.Error(err)
	}
	err = registry.Register(Rules("api", web))
	if !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		t.Errorf("a name that is taken: %v", err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

type stats []httplimit.RuleStats

func (s stats) Stats() []httplimit.RuleStats { return s }

// inRedis is a limiter of a rule.
type inRedis struct {
	tb.Limiter
	fixed
}

// Tables collects nothing but the tables, for rules whose requests are counted otherwise.
func TestCollectsTables(t *testing.T) {
	l := newLimiter(t, httplimit.Rule{
		Name: "a", Keys: []string{"ip:address"},
		Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	})
	l.Middleware(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, "/", nil))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Buckets("", l))
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tb_evictions_total Keys evicted to make room. Their bucket was full, or in debt that is `+
		`forgiven.
		# TYPE tb_evictions_total counter
		tb_evictions_total{kind="full",rule="a",set=""} 0
		tb_evictions_total{kind="in_debt",rule="a",set=""} 0
		# HELP tb_forgiven_tokens_total Debt of evicted buckets in tokens. At most this many were `+
		`granted above the limit.
		# TYPE tb_forgiven_tokens_total counter
		tb_forgiven_tokens_total{rule="a",set=""} 0
		# HELP tb_keys Keys that have a bucket.
		# TYPE tb_keys gauge
		tb_keys{rule="a",set=""} 1
		# HELP tb_refused_new_keys_total Requests refused because the table had no room for their key.
		# TYPE tb_refused_new_keys_total counter
		tb_refused_new_keys_total{rule="a",set=""} 0
	`)); err != nil {
		t.Error(err)
	}
}

// The limiters of rules come and go with a policy, and so do their metrics.
func TestCollectsRulesInRedis(t *testing.T) {
	rules := make(stats, 2)
	for i, label := range []string{"a", "set/b"} {
		rules[i] = httplimit.RuleStats{Rule: label, Label: label, Limit: tb.Limit{Tokens: 1, Per: 1},
			Limiter: inRedis{fixed: fixed{Commands: uint64(i)}}}
	}
	source := &rules
	c := Rules("", source)
	const name, head = "tb_redis_commands_total", `
		# HELP tb_redis_commands_total Commands that were sent.
		# TYPE tb_redis_commands_total counter
		`
	wantText(t, c, head+`tb_redis_commands_total{rule="a"} 0
		tb_redis_commands_total{rule="set/b"} 1
	`, name)
	*source = rules[1:]
	wantText(t, c, head+`tb_redis_commands_total{rule="set/b"} 1
	`, name)
	*source = stats{{Limit: tb.Limit{Tokens: 1, Per: 1}}}
	wantText(t, c, "", name)
}
