package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
)

// settle is how long a change of the file is waited for to be complete. Editors write in
// several steps, each of which is an event.
const settle = 100 * time.Millisecond

// reloader keeps a proxy's policy that of a file.
type reloader struct {
	proxy *Proxy
	file  string
	data  []byte // what is in force, or was last tried
}

// run reads the file again on each signal, and when it has changed, until the end of ctx.
func (l *reloader) run(ctx context.Context, signals <-chan os.Signal) {
	var events <-chan fsnotify.Event // never, without a watcher
	var errs <-chan error
	if watcher, err := l.watch(); err != nil {
		l.proxy.Log.Warn("the policy is read again on SIGHUP only", "error", err)
	} else {
		defer func() { _ = watcher.Close() }()
		events, errs = watcher.Events, watcher.Errors
	}
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			l.reload("SIGHUP")
		case <-events:
			// Any event will do. What it is about says little where files are links that
			// are replaced, and what is in the file is compared in any case.
			if settled == nil {
				settled = time.After(settle)
			}
		case err := <-errs:
			l.proxy.Log.Warn("watching the policy", "error", err)
		case <-settled:
			settled = nil
			l.changed()
		}
	}
}

// watch watches the directories of the file, for editors put a new file in its place. If it
// is a link, as all files of a Kubernetes ConfigMap are, there are two.
func (l *reloader) watch() (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	err = watcher.Add(filepath.Dir(l.file))
	if target, broken := filepath.EvalSymlinks(l.file); err == nil && broken == nil {
		err = watcher.Add(filepath.Dir(target))
	}
	if err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return watcher, nil
}

// changed reads the file if it is another than before.
func (l *reloader) changed() {
	data, err := os.ReadFile(l.file)
	if err == nil && !bytes.Equal(data, l.data) {
		l.apply(data, "the file changed")
	}
}

// reload reads the file in any case.
func (l *reloader) reload(why string) {
	data, err := os.ReadFile(l.file)
	if err != nil {
		l.reject(why, err)
		return
	}
	l.apply(data, why)
}

// apply puts the policy in force, if there is nothing wrong with it.
func (l *reloader) apply(data []byte, why string) {
	l.data = data
	policy, warnings, err := policyfile.Parse(data)
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
	warn(l.proxy.Log, l.file, warnings)
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
