package proxy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
)

// period is how often the file is read to see whether it has changed. That costs some ten
// microseconds, and sees what notifications of the kernel do not: links that are replaced
// anywhere on the way to the file, and files of networks and of other machines' mounts.
const period = 250 * time.Millisecond

// reloader keeps a proxy's policy that of a file.
type reloader struct {
	proxy *Proxy
	file  string
	last  content // what was read last
	tried content // what is in force, or was rejected last
}

// content is what is in a file, or why that is not known.
type content struct{ text, problem string }

func (l *reloader) read() content {
	data, err := os.ReadFile(l.file)
	if err != nil {
		return content{problem: err.Error()}
	}
	return content{text: string(data)}
}

// run reads the file again on each signal, and with each tick to see if it has changed,
// until the end of ctx.
func (l *reloader) run(ctx context.Context, signals <-chan os.Signal, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			l.apply(l.read(), "SIGHUP")
		case <-ticks:
			l.look()
		}
	}
}

// look applies the file if it has changed and was found the same twice, for it may be
// written in several steps.
func (l *reloader) look() {
	now := l.read()
	if now == l.last && now != l.tried {
		l.apply(now, "the file changed")
	}
	l.last = now
}

// apply puts the policy in force, if there is nothing wrong with it.
func (l *reloader) apply(c content, why string) {
	l.tried = c
	if c.problem != "" {
		l.reject(why, errors.New(c.problem))
		return
	}
	policy, err := policyfile.Parse([]byte(c.text))
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
	warn(l.proxy.Log, l.file, policy.Warnings())
}

// reject says what is wrong, line by line.
func (l *reloader) reject(why string, err error) {
	l.proxy.Metrics.Reload(false)
	problems := policyfile.Problems(err)
	l.proxy.Log.Error("policy rejected: the one before stays in force", "file", l.file,
		"because", why, "errors", len(problems))
	for _, problem := range problems {
		l.proxy.Log.Error("policy", "file", l.file, "error", problem)
	}
}

func warn(log *slog.Logger, file string, warnings []string) {
	for _, text := range warnings {
		log.Warn("policy", "file", file, "warning", text)
	}
}
