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
	l.proxy.Log.Info("policy reloaded", "file", l.file, "because", why,
		"rules", len(l.proxy.Limiter.Stats()))
	logWarnings(l.proxy.Log, l.file, policy.Warnings())
}

// reject logs each error of a policy that is not put in force.
func (l *reloader) reject(why string, err error) {
	l.proxy.Metrics.Reload(false)
	problems := cli.Problems(err)
	l.proxy.Log.Error("policy rejected: the previous one stays in force", "file", l.file,
		"because", why, "errors", len(problems))
	for _, problem := range problems {
		l.proxy.Log.Error("policy", "file", l.file, "error", problem)
	}
}

// policyName returns the name of the policy for the log.
func (r *runner) policyName() string { return cmp.Or(r.Policy, "the default policy") }

func logWarnings(log *slog.Logger, file string, warnings []string) {
	for _, text := range warnings {
		log.Warn("policy", "file", file, "warning", text)
	}
}
