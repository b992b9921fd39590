package proxy

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/daemon"
)

// reloader applies a policy file to a proxy whenever it changes.
type reloader struct {
	proxy *Proxy
	file  string
}

// watcher returns the watcher that calls the reloader.
func (l *reloader) watcher() *daemon.Watcher {
	return &daemon.Watcher{
		Read: func() (string, error) {
			text, err := daemon.ReadRegular(l.file)
			return string(text), err
		},
		Apply: l.apply, Patience: daemon.Patience,
	}
}

// apply puts the policy in force if it has no errors.
func (l *reloader) apply(c daemon.Content, why string) {
	if c.Problem != "" {
		l.reject(why, errors.New(c.Problem))
		return
	}
	policy, err := cli.ParsePolicy([]byte(c.Text))
	if err == nil {
		err = l.proxy.Limiter.SetPolicy(policy)
	}
	if err != nil {
		l.reject(why, err)
		return
	}
	l.proxy.Metrics.Reload(true)
	log := l.log()
	log.Info("policy reloaded", "because", why, "rules", len(l.proxy.Limiter.Stats()))
	daemon.LogWarnings(log, "policy", policy.Warnings())
}

// reject logs each error of a policy that is not put in force.
func (l *reloader) reject(why string, err error) {
	l.proxy.Metrics.Reload(false)
	daemon.LogRejected(l.log(), "policy", why, cli.Problems(err))
}

func (l *reloader) log() *slog.Logger { return l.proxy.Log.With("file", l.file) }

// policyName returns the name of the policy for the log.
func (r *runner) policyName() string { return cmp.Or(r.Policy, "the default policy") }
