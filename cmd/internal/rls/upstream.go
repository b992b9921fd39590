package rls

import (
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// upstream collects the metrics that envoyproxy/ratelimit has, by its default mapping for
// Prometheus, so that its dashboards and alerts go on.
type upstream struct {
	collector
	accepted, rejected atomic.Uint64 // configurations
}

// upstreamMethod is a value of the label grpc_method.
const upstreamMethod = "ShouldRateLimit"

// A dot ends a key, so envoyproxy/ratelimit replaces the dots of an address, and : and |.
var (
	replaced    = regexp.MustCompile(`[:|]|\d{1,3}(\.\d{1,3}){3}`)
	underscores = strings.NewReplacer(".", "_", ":", "_", "|", "_")
)

func (u *upstream) Collect(ch chan<- prometheus.Metric) {
	out := counters(ch)
	type keys struct{ domain, first, second string }
	all := map[keys]*[decisions]uint64{}
	for id, sums := range u.hits() {
		name := replaced.ReplaceAllStringFunc(id.domain+"."+id.path, underscores.Replace)
		parts := append(strings.SplitN(name, ".", 4), "") // a label that is "" is no label
		k := keys{parts[0], parts[1], parts[2]}
		if all[k] == nil {
			all[k] = new([decisions]uint64)
		}
		for d, n := range sums {
			all[k][d] += n
		}
	}
	for k, sums := range all {
		for d, n := range sums {
			name := decision(d).String()
			if decision(d) == total {
				name = "total_hits"
			}
			out.add("ratelimit_service_rate_limit_"+name,
				"Hits of the rules whose path begins with these keys: as tb_rls_hits_total.",
				n, "domain", k.domain, "key1", k.first, "key2", k.second)
		}
	}
	n := &u.service.counts
	failed, undecided := n.invalid.Load()+n.unconfigured.Load(), n.undecided.Load()
	out.add("ratelimit_service_total_requests", "Requests.",
		n.allowed.Load()+n.refused.Load()+n.shadowed.Load()+failed+undecided,
		"grpc_method", upstreamMethod)
	const help = "Requests that were answered with an error."
	out.add("ratelimit_service_should_rate_limit_error", help, undecided, "err_type", "redis_error")
	out.add("ratelimit_service_should_rate_limit_error", help, failed, "err_type", "service_error")
	out.add("ratelimit_service_config_load_success", "Configurations that were accepted.",
		u.accepted.Load())
	out.add("ratelimit_service_config_load_error", "Configurations that were rejected.",
		u.rejected.Load())
}
