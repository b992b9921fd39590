package proxy

import (
	"errors"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
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
				Attrs: []any{"rules", len(p.Limiter.Stats())}, Warnings: policy.Warnings(),
			}, nil
		},
	}
}
