package proxy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// newReloader returns a reloader of the policy of a proxy, which has this name in the log.
func newReloader(p *Proxy, name string) *daemon.Reloader {
	return &daemon.Reloader{
		What: "policy", Log: p.Log.With("file", name), Count: p.Metrics.Reload,
		Apply: func(text string) (done daemon.Applied, err error) {
			policy, err := cli.ParsePolicy([]byte(text))
			if err == nil {
				err = p.Limiter.SetPolicy(policy)
			}
			if err != nil {
				return done, errors.New(strings.Join(cli.Problems(err), "\n"))
			}
			return daemon.Applied{
				Attrs: []any{"rules", len(p.Limiter.Stats())}, Warnings: p.warnings(policy),
			}, nil
		},
	}
}

// warnings returns the warnings of a policy, and one for each of its fields that the proxy drops.
func (p *Proxy) warnings(policy *httplimit.Policy) []string {
	all := policy.Warnings()
	for i := range policy.Sets {
		for r := range policy.Sets[i].All() {
			keys := append(slices.Sorted(maps.Keys(r.Match)), r.Tiers.By, r.Cost.Source)
			for _, key := range slices.Concat(r.Keys, keys) {
				name, isField := strings.CutPrefix(key, "header:")
				if isField && strings.Contains(name, "_") && !p.Underscores {
					all = append(all, fmt.Sprintf("rule %s never has %s without --underscores-in-headers",
						r.Name, key))
				}
			}
		}
	}
	return all
}
