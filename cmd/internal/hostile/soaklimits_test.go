package hostile

import "fmt"

// limit is the limit of a rule: how many tokens a bucket holds, and how many come in a second.
type limit struct{ capacity, rate float64 }

// The rules of all servers. A client has one bucket, and a tenant one for all of its clients.
const (
	perClient = iota
	perTenant
	rules
)

// versions are the limits that the servers have in turn. The tenants reach their limit in the first
// version only.
var versions = [2][rules]limit{
	{{20, 5}, {40, 30}},
	{{10, 8}, {60, 45}},
}

// either returns the greater of two limits.
func either(a, b limit) limit {
	return limit{max(a.capacity, b.capacity), max(a.rate, b.rate)}
}

// policyOf returns the limits as a file of tb-proxy.
func policyOf(limits [rules]limit) string {
	rule := func(name, key string, l limit) string {
		return fmt.Sprintf(`{"name": %q, "limit_keys": [%q], "algorithm_config":
			{"tokens_per_second": %v, "burst": %v}}`, name, key, l.rate, l.capacity)
	}
	return `{"rules": [` + rule("client", "ip:address", limits[perClient]) + ",\n" +
		rule("tenant", "header:x-tenant", limits[perTenant]) + "]}"
}

// configOf returns the limits as a file of tb-rls.
func configOf(limits [rules]limit) string {
	rule := func(key string, l limit) string {
		return fmt.Sprintf("  - key: %s\n    rate_limit: {unit: second, requests_per_unit: %v,"+
			" burst: %v}\n", key, l.rate, l.capacity)
	}
	return "domain: soak\ndescriptors:\n" + rule("client", limits[perClient]) +
		rule("tenant", limits[perTenant])
}

// writeLimits writes the limits in force to the files of the servers.
func (s *soak) writeLimits() {
	s.Helper()
	s.write(policyFile, policyOf(versions[s.version]))
	s.write(configFile, configOf(versions[s.version]))
}
