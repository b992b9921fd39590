package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// RedisSource is a *redis.Limiter, or has the statistics of one.
type RedisSource interface{ Stats() redis.Stats }

// Redis returns a collector of a limiter whose buckets are in Redis. Its label rule is empty.
func Redis(name string, l RedisSource) prometheus.Collector {
	return ofRedis(name, func(emit emit[redis.Stats]) { emit(l.Stats(), "") })
}

// ofRedis returns a collector of the limiters of a store, by rule. The first one has the statistics
// of the server, which all have in common.
func ofRedis(name string, rules func(emit[redis.Stats])) *collector {
	server := func(emit emit[redis.Stats]) {
		var first sync.Once
		rules(func(s redis.Stats, _ ...string) { first.Do(func() { emit(s) }) })
	}
	return newCollector(name, []string{"rule"}, redisFamilies, rules).
		and(newCollector(name, nil, serverFamilies, server))
}

var redisFamilies = []family[redis.Stats]{
	{"tb_redis_decisions_total",
		"Calls, by what decided them and by outcome: granted or refused.",
		prometheus.CounterValue, []string{"by", "outcome"}, func(s *redis.Stats) []sample {
			return []sample{
				count(s.Granted, redis.ByServer.String(), "granted"),
				count(s.Refused, redis.ByServer.String(), "refused"),
				count(s.RefusedLocally, redis.ByDenialCache.String(), "refused"),
				count(s.Leased, redis.ByLease.String(), "granted"),
				count(s.PolicyGranted, redis.ByPolicy.String(), "granted"),
				count(s.PolicyRefused, redis.ByPolicy.String(), "refused"),
			}
		}},
	{"tb_redis_failures_total", "Calls that the server did not decide, by cause.",
		prometheus.CounterValue, []string{"cause"}, func(s *redis.Stats) (all []sample) {
			for cause, n := range s.Failed {
				all = append(all, count(n, cause.String()))
			}
			return all
		}},
	counter("tb_redis_abandoned_calls_total",
		"Calls that the server granted in time, but whose caller had left when the reply came.",
		func(s *redis.Stats) float64 { return float64(s.Abandoned) }),
	counter("tb_redis_reservations_total", "Reservations that took tokens.",
		func(s *redis.Stats) float64 { return float64(s.Reservations) }),
	counter("tb_redis_cancellations_total", "Reservations that were cancelled.",
		func(s *redis.Stats) float64 { return float64(s.Cancellations) }),
	counter("tb_redis_unpaid_tokens_total",
		"Tokens that settled costs were above their estimates and could not be charged.",
		func(s *redis.Stats) float64 { return s.UnpaidTokens }),
	counter("tb_redis_lease_claimed_tokens_total", "Tokens that were taken for leases.",
		func(s *redis.Stats) float64 { return s.ClaimedTokens }),
	counter("tb_redis_lease_returned_tokens_total", "Tokens that leases have given back.",
		func(s *redis.Stats) float64 { return s.ReturnedTokens }),
}

// serverFamilies are of the server, which the limiters of a store have in common.
var serverFamilies = []family[redis.Stats]{
	gauge("tb_redis_breaker_state",
		"Whether the limiter asks the server: 0 is closed (it does), 1 open, 2 recovering.",
		func(s *redis.Stats) float64 { return float64(s.Breaker) }),
	counter("tb_redis_breaker_opened_total", "How often the breaker has opened.",
		func(s *redis.Stats) float64 { return float64(s.Opened) }),
	counter("tb_redis_commands_total", "Commands that were sent.",
		func(s *redis.Stats) float64 { return float64(s.Commands) }),
	gauge("tb_redis_commands_in_flight", "Commands that are under way now.",
		func(s *redis.Stats) float64 { return float64(s.InFlight) }),
	counter("tb_redis_script_loads_total",
		"Commands that found a server without the script, as after its restart or a failover.",
		func(s *redis.Stats) float64 { return float64(s.Loaded) }),
	counter("tb_redis_stale_commands_total",
		"Commands that reached the server after their deadline, and took nothing.",
		func(s *redis.Stats) float64 { return float64(s.Stale) }),
	gauge("tb_redis_clock_offset_seconds",
		"How far the server's clock is ahead of this machine's clock.",
		func(s *redis.Stats) float64 { return s.Offset.Seconds() }),
	gauge("tb_redis_clock_offset_error_seconds", "Bound on the error of the clock offset.",
		func(s *redis.Stats) float64 { return s.OffsetError.Seconds() }),
	counter("tb_redis_clock_steps_total",
		"Replies that contradict the clock offset: a clock was set, or another server answered.",
		func(s *redis.Stats) float64 { return float64(s.ClockSteps) }),
}
