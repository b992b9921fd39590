// Package otel observes the rules of a limiter with OpenTelemetry.
package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Observe makes instruments that read l.Stats when metrics are collected. A request costs nothing
// more. In an exporter for Prometheus they have the names that tb-proxy uses.
func Observe(m metric.Meter, l *httplimit.Limiter) (metric.Registration, error) {
	requests, err1 := m.Int64ObservableCounter("tb.requests", metric.WithUnit("{request}"))
	errs, err2 := m.Int64ObservableCounter("tb.errors", metric.WithUnit("{request}"))
	keys, err3 := m.Int64ObservableUpDownCounter("tb.keys", metric.WithUnit("{key}"))
	evictions, err4 := m.Int64ObservableCounter("tb.evictions", metric.WithUnit("{key}"))
	forgiven, err5 := m.Float64ObservableCounter("tb.forgiven_tokens", metric.WithUnit("{token}"))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range l.Stats() {
			set, rule := attribute.String("set", s.Set), attribute.String("rule", s.Rule)
			one := metric.WithAttributes(set, rule)
			with := func(key, value string) metric.MeasurementOption {
				return metric.WithAttributes(set, rule, attribute.String(key, value))
			}
			o.ObserveInt64(requests, int64(s.Granted), with("outcome", "granted"))
			o.ObserveInt64(requests, int64(s.Refused), with("outcome", "refused"))
			o.ObserveInt64(requests, int64(s.Rejected), with("outcome", "rejected"))
			o.ObserveInt64(requests, int64(s.ShadowGranted), with("outcome", "shadow_granted"))
			o.ObserveInt64(requests, int64(s.ShadowRefused), with("outcome", "shadow_refused"))
			o.ObserveInt64(errs, int64(s.Errors), one)
			o.ObserveInt64(keys, int64(s.Table.Keys), one)
			o.ObserveInt64(evictions, int64(s.Table.EvictedFull), with("kind", "full"))
			o.ObserveInt64(evictions, int64(s.Table.EvictedInDebt), with("kind", "in_debt"))
			o.ObserveFloat64(forgiven, s.Table.Forgiven, one)
		}
		return nil
	}, requests, errs, keys, evictions, forgiven)
}
