package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/beforerules"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

func newReloader(p *Proxy, name string) *daemon.Reloader {
	return &daemon.Reloader{What: "policy", Log: p.Log.With("file", name), Count: p.Metrics.Reload}
}

func (p *Proxy) reloaded(r *daemon.Reloader, x httplimit.Reload) {
	if x.Err != nil {
		r.Count(false)
		r.LogRejected(x.Cause, errors.New(strings.Join(cli.Problems(x.Err), "\n")))
		return
	}
	r.Accepted(x.Cause, daemon.Applied{
		Attrs: []any{"rules", len(p.Limiter.Stats())}, Warnings: p.warnings(x.Policy),
	})
}

// warnings returns the warnings of a policy, and one for each of its fields that the proxy drops.
// The live page has the last ones.
func (p *Proxy) warnings(policy *httplimit.Policy) []string {
	all, trusted := policy.Warnings(), len(p.Client.Trusted) > 0
	for i := range policy.Sets {
		for r := range policy.Sets[i].All() {
			keys := append(slices.Sorted(maps.Keys(r.Match)), r.Tiers.By, r.Priority.By, r.Cost.Source)
			for _, key := range slices.Concat(r.Keys, keys) {
				name, isField := strings.CutPrefix(key, "header:")
				name = http.CanonicalHeaderKey(name)
				kept := p.Underscores && strings.Contains(name, "_") || trusted && name == p.addressHeader
				if isField && beforerules.Drops(name, trusted) && !kept {
					all = append(all, fmt.Sprintf("rule %s never has %s, which is dropped", r.Name, key))
				}
			}
		}
	}
	p.warned.Store(all)
	return all
}
