package otel

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func collect(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	set := func(name string, attributes attribute.Set, value float64) {
		all[name+" "+attributes.Encoded(attribute.DefaultEncoder())] = value
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch sum := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range sum.DataPoints {
					set(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Sum[float64]:
				for _, p := range sum.DataPoints {
					set(m.Name, p.Attributes, p.Value)
				}
			default:
				t.Errorf("%s is a %T", m.Name, sum)
			}
		}
	}
	return all
}

// A rule and its shadow have tables of two buckets. The metrics are those of tb-proxy, with dots.
func TestObserve(t *testing.T) {
	now := time.Now()
	rule := httplimit.Rule{
		Name: "enforced", Keys: []string{"header:x-api-key"}, OnMissing: httplimit.Reject,
		Limit: tb.Limit{Capacity: 4, Tokens: 1, Per: time.Hour},
	}
	shadow := rule
	shadow.Name, shadow.Shadow, shadow.Limit.Capacity = "shadow", true, 2
	l, err := httplimit.New(&httplimit.Policy{
		Sets: []httplimit.RuleSet{{
			Name: "api", Evaluation: httplimit.AllMatch, Rules: []httplimit.Rule{rule, shadow},
		}},
	}, httplimit.WithLimiterOptions(tb.WithMaxKeys(2), tb.WithClock(func() time.Time { return now })))
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	reader := metric.NewManualReader()
	registration, err := Observe(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range "aaaaaaabc " {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Api-Key", string(key))
		l.Decide(httptest.NewRecorder(), r)
	}
	want := map[string]float64{
		"tb.requests outcome=granted,rule=enforced,set=api":        6,
		"tb.requests outcome=refused,rule=enforced,set=api":        3,
		"tb.requests outcome=rejected,rule=enforced,set=api":       1,
		"tb.requests outcome=shadow_granted,rule=enforced,set=api": 0,
		"tb.requests outcome=shadow_refused,rule=enforced,set=api": 0,
		"tb.requests outcome=granted,rule=shadow,set=api":          0,
		"tb.requests outcome=refused,rule=shadow,set=api":          0,
		"tb.requests outcome=rejected,rule=shadow,set=api":         0,
		"tb.requests outcome=shadow_granted,rule=shadow,set=api":   4,
		"tb.requests outcome=shadow_refused,rule=shadow,set=api":   2,
		"tb.errors rule=enforced,set=api":                          0,
		"tb.errors rule=shadow,set=api":                            0,
		"tb.keys rule=enforced,set=api":                            2,
		"tb.keys rule=shadow,set=api":                              2,
		"tb.evictions kind=full,rule=enforced,set=api":             0,
		"tb.evictions kind=full,rule=shadow,set=api":               0,
		"tb.evictions kind=in_debt,rule=enforced,set=api":          1,
		"tb.evictions kind=in_debt,rule=shadow,set=api":            1,
		"tb.forgiven_tokens rule=enforced,set=api":                 1,
		"tb.forgiven_tokens rule=shadow,set=api":                   1,
	}
	if got := collect(t, reader); !maps.Equal(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
	for series := range want {
		name, _, _ := strings.Cut(strings.ReplaceAll(series, ".", "_"), " ")
		if !regexp.MustCompile("\\| `" + name + "(_total)?` \\|").Match(document) {
			t.Errorf("docs/proxy.md does not have %s", name)
		}
	}
	if err := registration.Unregister(); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, reader); len(got) > 0 {
		t.Errorf("after Unregister: %v", got)
	}
}
