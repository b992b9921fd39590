package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

type stats []httplimit.RuleStats

func (s stats) Stats() []httplimit.RuleStats { return s }

// inRedis is a limiter of a rule.
type inRedis struct {
	tb.StoreLimiter
	fixed
}

// samples returns the samples of a collector, with the labels beside limiter, set and rule.
func samples(t *testing.T, c prometheus.Collector) (lines []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			line := f.GetName()
			for _, l := range m.GetLabel() {
				if !slices.Contains([]string{"limiter", "set", "rule"}, l.GetName()) {
					line += " " + l.GetValue()
				}
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			lines = append(lines, fmt.Sprint(line, " ", value))
		}
	}
	return lines
}

func TestCollectsRules(t *testing.T) {
	api := stats{{
		Set: "s", Rule: "a", Limit: tb.Limit{Capacity: 1, Tokens: 30, Per: time.Minute},
		Granted: 1, Refused: 2, Rejected: 3, ShadowGranted: 4, ShadowRefused: 5, Errors: 6,
		Delayed: 7, DelaySeconds: 8.5, Waiting: 9, HungUp: 10, Settled: 11, Estimated: 12,
		Table: tb.Stats{
			Keys: 13, EvictedFull: 14, EvictedInDebt: 15, Forgiven: 16, RefusedNew: 17,
			Settled: 18, Unpaid: 19,
		},
	}}
	tables := []string{
		"tb_evictions_total full 14", "tb_evictions_total in_debt 15",
		"tb_forgiven_tokens_total 16", "tb_keys 13", "tb_refused_new_keys_total 17",
	}
	want := append([]string{
		"tb_delay_seconds_total 8.5", "tb_delayed_requests_total 7", "tb_errors_total 6",
		"tb_hung_up_requests_total 10", "tb_limit_tokens_per_second 0.5",
		"tb_requests_total granted 1", "tb_requests_total refused 2",
		"tb_requests_total rejected 3", "tb_requests_total shadow_granted 4",
		"tb_requests_total shadow_refused 5",
		"tb_settled_responses_total estimated 12",
		"tb_settled_responses_total reported 11",
		"tb_settled_tokens_total 18", "tb_unpaid_tokens_total 19", "tb_waiting_requests 9",
	}, tables...)
	slices.Sort(want)
	if got := samples(t, Rules("api", api)); !slices.Equal(got, want) {
		t.Errorf("rules have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := samples(t, Buckets("api", api)); !slices.Equal(got, tables) {
		t.Errorf("tables have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tables, "\n"))
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Rules("api", api), Rules("web", api))
	if registry.Register(Rules("api", api)) == nil {
		t.Error("a name that is taken is registered again")
	}
}

// The limiters of rules come and go with a policy, and so do their metrics.
func TestCollectsRulesInRedis(t *testing.T) {
	rules, server := make(stats, 2), redis.ServerStats{Commands: 7}
	for i, label := range []string{"a", "set/b"} {
		rules[i] = httplimit.RuleStats{Rule: label, Label: label, Limit: tb.Limit{Tokens: 1, Per: 1},
			Limiter: inRedis{fixed: fixed{Reservations: uint64(i), ServerStats: server}}}
	}
	source := &rules
	c := Rules("", source)
	const reservations, commands = "tb_redis_reservations_total", `
		# HELP tb_redis_commands_total Commands that were sent.
		# TYPE tb_redis_commands_total counter
		tb_redis_commands_total 7
		# HELP tb_redis_reservations_total Reservations that took tokens.
		# TYPE tb_redis_reservations_total counter
		`
	names := []string{"tb_redis_commands_total", reservations}
	wantText(t, c, commands+reservations+`{rule="a"} 0
		`+reservations+`{rule="set/b"} 1
	`, names...)
	*source = rules[1:]
	wantText(t, c, commands+reservations+`{rule="set/b"} 1
	`, names...)
	*source = stats{{Limit: tb.Limit{Tokens: 1, Per: 1}}}
	wantText(t, c, "", names...)
}
