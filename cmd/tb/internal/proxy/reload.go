package proxy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// pollInterval is how often the file is read to find changes. A read costs about ten
// microseconds. It finds changes that kernel notifications miss: a symbolic link replaced
// anywhere on the path, and files that another machine writes.
const pollInterval = 250 * time.Millisecond

// reloader applies a policy file to a proxy whenever it changes.
type reloader struct {
	proxy   *Proxy
	file    string
	seen    content // by the last poll
	applied content // last, whether it was accepted or rejected
}

// content is the text of a file, or the error that reading it returned.
type content struct{ text, problem string }

func (l *reloader) read() content {
	data, err := os.ReadFile(l.file)
	if err != nil {
		return content{problem: err.Error()}
	}
	return content{text: string(data)}
}

// run applies the file on each signal, and polls it on each tick, until ctx is done.
func (l *reloader) run(ctx context.Context, signals <-chan os.Signal, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			l.apply(l.read(), "SIGHUP")
		case <-ticks:
			l.poll()
		}
	}
}

// poll applies the file if it has changed and two polls in a row have read the same. A file
// may be written in several steps.
func (l *reloader) poll() {
	now := l.read()
	if now == l.seen && now != l.applied {
		l.apply(now, "the file changed")
	}
	l.seen = now
}

// apply puts the policy in force if it has no errors.
func (l *reloader) apply(c content, why string) {
	l.applied = c
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
	logWarnings(l.proxy.Log, l.file, policy)
}

// reject logs each error of a policy that is not put in force.
func (l *reloader) reject(why string, err error) {
	l.proxy.Metrics.Reload(false)
	problems := policyfile.Problems(err)
	l.proxy.Log.Error("policy rejected: the previous one stays in force", "file", l.file,
		"because", why, "errors", len(problems))
	for _, problem := range problems {
		l.proxy.Log.Error("policy", "file", l.file, "error", problem)
	}
}

func logWarnings(log *slog.Logger, file string, policy *httplimit.Policy) {
	for _, text := range policy.Warnings() {
		log.Warn("policy", "file", file, "warning", text)
	}
}
