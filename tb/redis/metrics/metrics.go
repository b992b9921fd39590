// Package metrics collects the statistics of limiters in Redis for Prometheus. It is a module of
// its own, so that package redis does not depend on Prometheus.
package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// Source is a *redis.Limiter, or has the statistics of one.
type Source interface{ Stats() redis.Stats }

// Collector is a prometheus.Collector for any number of limiters. It reads their statistics only
// when Prometheus asks. Use New to make one. It is safe for concurrent use if its sources are.
type Collector struct{ sources iter.Seq2[string, Source] }

var _ prometheus.Collector = Collector{}

// New returns a collector of the limiters that sources yields whenever Prometheus asks, each with
// its name, which is the value of the label limiter. Two names must not be equal, and names must
// not come from requests, because Prometheus keeps a time series for each. maps.All yields the
// limiters of a map.
func New(sources iter.Seq2[string, Source]) Collector { return Collector{sources} }

var (
	decisions = describe("decisions_total",
		"Calls, by what decided them and by outcome: granted or refused.", "by", "outcome")
	failures = describe("failures_total",
		"Calls that the server did not decide, by cause.", "cause")
	commands = describe("commands_total", "Commands that were sent.")
	inFlight = describe("commands_in_flight", "Commands that are under way now.")
	loaded   = describe("script_loads_total",
		"Commands that found a server without the script, as after its start or a failover.")
	stale = describe("stale_commands_total",
		"Commands that reached the server after their deadline, and took nothing.")
	abandoned = describe("abandoned_calls_total",
		"Calls that the server granted in time, but whose caller had left when the reply came.")
	reserved  = describe("reservations_total", "Reservations that took tokens.")
	cancelled = describe("cancellations_total", "Reservations that were cancelled.")
	unpaid    = describe("unpaid_tokens_total",
		"Tokens that settled costs were above their estimates and could not be charged.")
	offset = describe("clock_offset_seconds",
		"How far the server's clock is ahead of this machine's clock.")
	offsetError = describe("clock_offset_error_seconds",
		"Bound on the error of the clock offset.")
	breaker = describe("breaker_state",
		"Whether the limiter asks the server: 0 is closed (it does), 1 open, 2 recovering.")
	opened   = describe("breaker_opened_total", "How often the breaker has opened.")
	claimed  = describe("lease_claimed_tokens_total", "Tokens that were taken for leases.")
	returned = describe("lease_returned_tokens_total", "Tokens that leases have given back.")
	steps    = describe("clock_steps_total",
		"Replies that contradict the clock offset: a clock was set, or another server answered.")

	all = []*prometheus.Desc{
		decisions, failures, breaker, opened, commands, inFlight, loaded, stale, abandoned, reserved,
		cancelled, unpaid, claimed, returned, offset, offsetError, steps,
	}
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tb_redis_"+name, help, append([]string{"limiter"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	for name, s := range c.sources {
		collect(ch, name, s.Stats())
	}
}

func collect(ch chan<- prometheus.Metric, name string, s redis.Stats) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, x float64, label ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, x, append([]string{name}, label...)...)
	}
	count := func(d *prometheus.Desc, n uint64, label ...string) {
		send(d, prometheus.CounterValue, float64(n), label...)
	}
	gauge := func(d *prometheus.Desc, x float64) { send(d, prometheus.GaugeValue, x) }
	count(decisions, s.Granted, redis.ByServer.String(), "granted")
	count(decisions, s.Refused, redis.ByServer.String(), "refused")
	count(decisions, s.RefusedLocally, redis.ByDenialCache.String(), "refused")
	count(decisions, s.Leased, redis.ByLease.String(), "granted")
	count(decisions, s.PolicyGranted, redis.ByPolicy.String(), "granted")
	count(decisions, s.PolicyRefused, redis.ByPolicy.String(), "refused")
	for cause, n := range s.Failed {
		count(failures, n, cause.String())
	}
	gauge(breaker, float64(s.Breaker))
	count(opened, s.Opened)
	send(claimed, prometheus.CounterValue, s.ClaimedTokens)
	send(returned, prometheus.CounterValue, s.ReturnedTokens)
	count(commands, s.Commands)
	gauge(inFlight, float64(s.InFlight))
	count(loaded, s.Loaded)
	count(stale, s.Stale)
	count(abandoned, s.Abandoned)
	count(reserved, s.Reservations)
	count(cancelled, s.Cancellations)
	send(unpaid, prometheus.CounterValue, s.UnpaidTokens)
	gauge(offset, s.Offset.Seconds())
	gauge(offsetError, s.OffsetError.Seconds())
	count(steps, s.ClockSteps)
}
