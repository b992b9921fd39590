package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
)

const (
	// pollInterval is how often the file is read to find changes. A read costs some ten
	// microseconds. It finds changes that kernel notifications miss: a symbolic link replaced
	// anywhere on the path, and files that another machine writes.
	pollInterval = 250 * time.Millisecond
	// patience is how long a read may take before the log has an error.
	patience = 10 * time.Second
)

// bySignal is why the file is read again, if not because of a poll.
const bySignal = "SIGHUP"

// reloader applies a policy file to a proxy whenever it changes.
type reloader struct {
	proxy    *Proxy
	file     string
	readFile func(name string) ([]byte, error)
	patience time.Duration
	seen     content // by the last poll
	applied  content // last, whether it was accepted or rejected
}

// run applies the file on each signal, and polls it on each tick, until ctx is done. It reads the
// file once at a time: signals wait for the end of a read, and ticks are skipped.
func (l *reloader) run(ctx context.Context, signals <-chan os.Signal, ticks <-chan time.Time) {
	for {
		why := ""
		select {
		case <-ctx.Done():
			return
		case <-signals:
			why = bySignal
		case <-ticks:
		}
		c, ok := l.read(ctx)
		switch {
		case !ok:
			return
		case why == "":
			l.poll(c)
		default:
			l.apply(c, why)
		}
	}
}

// read reads the file. It returns false if ctx is done first.
func (l *reloader) read(ctx context.Context) (c content, ok bool) {
	result := startReading(l.file, l.readFile)
	late := time.NewTimer(l.patience)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return content{}, false
		case c := <-result:
			return c, true
		case <-late.C:
			l.apply(content{problem: "the file cannot be read: the file system does not answer"},
				"it is read again")
		}
	}
}

// poll applies the file if it has changed and two polls in a row have read the same. A file
// may be written in several steps.
func (l *reloader) poll(now content) {
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
		err = l.proxy.setPolicy(policy)
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
	problems := policyfile.Problems(err)
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
