package rls

import (
	"fmt"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// BenchmarkShouldRateLimit measures a decision without the network.
func BenchmarkShouldRateLimit(b *testing.B) {
	const tree = `
- key: plan
  value: free
  descriptors:
  - {key: user, rate_limit: {unit: second, requests_per_unit: 1000000}}
- {key: user, rate_limit: {unit: second, requests_per_unit: 1000000}}
- {key: slow, rate_limit: {unit: year, requests_per_unit: 1}}
- {key: path, value: "/api/*/x", rate_limit: {unit: second, requests_per_unit: 1000000}}
`
	for _, c := range []struct {
		name        string
		descriptors []string
		fields      Fields
	}{
		{"grant", []string{"user=%d"}, FieldsOff},
		{"refuse", []string{"slow=%d"}, FieldsOff},
		{"nested", []string{"plan=free,user=%d"}, FieldsOff},
		{"pattern", []string{"path=/api/%d/x"}, FieldsOff},
		{"two", []string{"plan=free,user=%d", "user=%d"}, FieldsOff},
		{"fields", []string{"user=%d"}, FieldsAll},
		{"unmatched", []string{"none=%d"}, FieldsOff},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, _ := newService(b, tree, func(o *Config) { o.Now, o.Fields = time.Now, c.fields })
			var all []*ratelimit.RateLimitRequest
			for i := range 1000 {
				var texts []string
				for _, d := range c.descriptors {
					texts = append(texts, fmt.Sprintf(d, i))
				}
				all = append(all, request(0, texts...))
			}
			for _, r := range all {
				send(b, s, r)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := s.ShouldRateLimit(b.Context(), all[i%len(all)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
