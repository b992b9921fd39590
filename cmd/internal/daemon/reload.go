package daemon

import (
	"log/slog"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// Reloader puts texts in force while a server runs: the texts of a policy or a configuration. It
// counts and logs them.
type Reloader struct {
	What string // of the texts, in the log
	Log  *slog.Logger
	// Apply puts a text in force. If it returns an error, which has a line for each problem, nothing
	// has changed.
	Apply func(text string) (Applied, error)
	Count func(accepted bool)
}

// Applied is what the log has about a text in force.
type Applied struct {
	Attrs    []any
	Warnings []string
}

// Put puts a text in force, or returns an error.
func (r *Reloader) Put(c textfile.Content, why string) error {
	var done Applied
	err := c.Err()
	if err == nil {
		done, err = r.Apply(c.Text)
	}
	if err == nil {
		r.Accepted(why, done)
	} else {
		r.Count(false)
	}
	return err
}

// Accepted counts and logs a text in force.
func (r *Reloader) Accepted(why string, done Applied) {
	r.Count(true)
	r.Log.Info(r.What+" reloaded", append([]any{"because", why}, done.Attrs...)...)
	r.LogWarnings(done.Warnings)
}

// Watcher returns a watcher of a text that read returns and that is in force already.
func (r *Reloader) Watcher(read func() (string, error), text string) *textfile.Watcher {
	apply := func(c textfile.Content, why string) {
		if err := r.Put(c, why); err != nil {
			r.LogRejected(why, err)
		}
	}
	return &textfile.Watcher{Read: read, Applied: textfile.Content{Text: text}, Apply: apply}
}

// LogRejected logs that a text does not come into force, and each of its problems.
func (r *Reloader) LogRejected(why string, err error) {
	problems := strings.Split(err.Error(), "\n")
	r.Log.Error(r.What+" rejected: the previous one stays in force", "because", why,
		"errors", len(problems))
	for _, problem := range problems {
		r.Log.Error(r.What, "error", problem)
	}
}

// LogWarnings logs the warnings of a text.
func (r *Reloader) LogWarnings(warnings []string) {
	for _, text := range warnings {
		r.Log.Warn(r.What, "warning", text)
	}
}
