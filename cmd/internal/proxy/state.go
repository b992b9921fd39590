package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/metrics"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

type stateFile struct {
	name    string
	limiter *httplimit.Limiter
	metrics *metrics.Metrics
	log     *slog.Logger
	saving  sync.Mutex
}

// restore reads the file, if there is one, and replaces it, so that a directory in which that is
// not possible is an error at once. A file with an error keeps the proxy from starting. Otherwise
// the proxy would forgive every debt, and soon replace the file.
func (s *stateFile) restore() error {
	f, err := textfile.Open(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.log.Info("there is no state: all buckets are full", "file", s.name)
	case err != nil:
		return fmt.Errorf("--state: %w", err)
	default:
		done, err := s.limiter.Restore(f)
		_ = f.Close() // nothing was written
		if err != nil {
			return fmt.Errorf("--state: %s: %w (move the file away to start with full buckets)",
				s.name, err)
		}
		s.log.Info("state restored", "file", s.name, "saved", done.Time, "buckets", done.Buckets)
		for _, text := range done.Skipped {
			s.log.Warn("buckets not restored", "file", s.name, "because", text)
		}
	}
	return s.save()
}

// target returns the name of the file that a save replaces: s.name, or where it leads if it is a
// symbolic link. A rename would replace the link.
func (s *stateFile) target() string {
	name := s.name
	for range 40 { // as Linux follows them
		next, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			dir, _ := filepath.Split(name)
			next = dir + next // as it is: a directory may be a link, too
		}
		name = next
	}
	return name
}

// create makes the file that takes the place of the target when it is complete. It is in the same
// directory, because a rename to another file system is not atomic.
func (*stateFile) create(target string) (*os.File, error) {
	name := target + ".tmp"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// save replaces the file in one step, so that a reader finds the state before or the state after.
func (s *stateFile) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	start, err := time.Now(), s.write()
	s.metrics.StateSaved(start, err)
	if err != nil {
		err = fmt.Errorf("--state: %w", err)
		s.log.Error("state not saved", "error", err)
	}
	return err
}

func (s *stateFile) write() error {
	target := s.target()
	f, err := s.create(target)
	if err != nil {
		return err
	}
	if err = s.limiter.Snapshot(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	// Without this the rename may be lost in a power failure. Some systems cannot do it.
	if dir, err := os.Open(filepath.Dir(target)); err == nil {
		_ = errors.Join(dir.Sync(), dir.Close())
	}
	return nil
}
