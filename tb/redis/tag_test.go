package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// A function of WithTag may call the limiter. If it panics, it leaves nothing under way.
func TestTagsOfAFunction(t *testing.T) {
	c := dial(t, redistest.Start(t))
	for name, opts := range map[string][]Option{
		"batching": nil, "without batching": {WithoutBatching()}, "leases": {WithLease(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			var l *Limiter
			tenant := func(key string) string {
				if key != "all:tenants" {
					_, _ = l.Allow(t.Context(), "all:tenants")
				}
				return strings.Split(key, ":")[1]
			}
			l = newLimiter(t, c, hot, append(opts, WithTag(tenant), WithPrefix(name))...)
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
