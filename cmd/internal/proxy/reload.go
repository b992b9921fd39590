package proxy

import (
	"cmp"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// reloader applies a policy file to a proxy whenever it changes.
type reloader struct {
	proxy *Proxy
	file  string
}

// watcher returns the watcher that calls the reloader.
func (l *reloader) watcher() *daemon.Watcher {
	return &daemon.Watcher{
		Read:  func() (string, error) { return daemon.ReadRegular(l.file) },
		Apply: l.apply,
	}
}

// apply puts the policy in force if it has no errors.
func (l *reloader) apply(c daemon.Content, why string) {
	var policy *httplimit.Policy
	err := c.Err()
	if err == nil {
		policy, err = cli.ParsePolicy([]byte(c.Text))
	}
	if err == nil {
		err = l.proxy.Limiter.SetPolicy(policy)
	}
	l.proxy.Metrics.Reload(err == nil)
	log := l.proxy.Log.With("file", l.file)
	if err != nil {
		daemon.LogRejected(log, "policy", why, cli.Problems(err))
		return
	}
	log.Info("policy reloaded", "because", why, "rules", len(l.proxy.Limiter.Stats()))
	daemon.LogWarnings(log, "policy", policy.Warnings())
}

// policyName returns the name of the policy for the log.
func (r *runner) policyName() string { return cmp.Or(r.Policy, "the default policy") }
