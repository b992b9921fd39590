package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// A function of WithTag that panics leaves nothing under way.
func TestTagThatPanics(t *testing.T) {
	c := dial(t, redistest.Start(t))
	tenant := func(key string) string { return strings.Split(key, ":")[1] }
	for name, opts := range map[string][]Option{
		"batching": nil, "without batching": {WithoutBatching()}, "leases": {WithLease(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, c, hot, append(opts, WithTag(tenant), WithPrefix(name))...)
			for range 3 {
				func() {
					defer func() {
						if recover() == nil {
							t.Error("no panic")
						}
					}()
					_, _ = l.Allow(t.Context(), "x")
				}()
			}
			if s := l.Stats(); s.InFlight != 0 || l.nodes[0].breaker.underWay != 0 {
				t.Errorf("%d under way: %+v", l.nodes[0].breaker.underWay, s)
			}
			if d, err := l.Allow(t.Context(), "x:y"); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

// A function of WithTag may call the limiter.
func TestTagThatAsksTheLimiter(t *testing.T) {
	c := dial(t, redistest.Start(t))
	for name, opts := range map[string][]Option{
		"batching": nil, "without batching": {WithoutBatching()}, "leases": {WithLease(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			var l *Limiter
			tag := func(key string) string {
				if key != "tenants" {
					_, _ = l.Allow(t.Context(), "tenants")
				}
				return key
			}
			l = newLimiter(t, c, hot, append(opts, WithTag(tag), WithPrefix(name))...)
			if d, err := l.Allow(t.Context(), "a"); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}
