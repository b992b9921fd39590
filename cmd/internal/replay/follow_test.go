package replay

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// write adds lines to a file, and makes it if it is not there.
func write(t *testing.T, name, lines string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(lines); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A log is followed while it grows, is rotated and is truncated.
func TestALogIsFollowed(t *testing.T) {
	policy, err := policyOptions(t, `{"name": "r", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 1, "burst": 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{options(t, "1", 2), policy} {
		synctest.Test(t, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "a.log")
			write(t, name, strings.Repeat(line("192.0.2.1", 1, 1), 3))
			var reported atomic.Pointer[Report]
			o.Follow = func(rep *Report) error {
				reported.Store(rep)
				return nil
			}
			check := func(requests, refused uint64) {
				t.Helper()
				time.Sleep(refreshInterval + pollInterval)
				synctest.Wait()
				latest := reported.Load()
				var got uint64
				if latest.Policy != nil {
					got = latest.Policy.Granted
				} else {
					got = latest.Limits[0].Granted
				}
				if latest.Requests != requests || got != requests-refused || len(latest.Files) != 1 {
					t.Errorf("%d requests, %d granted in %+v; want %d with %d refused", latest.Requests, got,
						latest.Files, requests, refused)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				res, err := Run(ctx, o, accesslog.Schema{}, []Input{{name, func() (io.ReadCloser, error) {
					return follow(name)
				}}})
				reported.Store(&res.Report)
				done <- err
			}()
			check(3, 1)
			check(3, 1)
			write(t, name, line("192.0.2.1", 1, 1)+line("192.0.2.2", 1, 1)+
				strings.TrimSuffix(line("192.0.2.1", 10, 1), "\n"))
			check(5, 2) // the last line has no end yet
			if err := os.Rename(name, name+".1"); err != nil {
				t.Fatal(err)
			}
			check(5, 2)
			write(t, name, strings.Repeat(line("192.0.2.1", 20, 1), 3))
			check(9, 3)
			if err := os.Truncate(name, 0); err != nil {
				t.Fatal(err)
			}
			check(9, 3)
			write(t, name, line("192.0.2.1", 30, 1))
			check(10, 3)
			cancel()
			err := <-done
			if end := reported.Load(); err != nil || !end.Interrupted || end.Requests != 10 {
				t.Errorf("%v, %+v", err, end)
			}
		})
	}
}

// A report that cannot be written ends the replay.
func TestAFailedReportEndsTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "a.log")
		write(t, name, line("a", 1, 1))
		o, failure := options(t, "1", 2), errors.New("no space")
		o.Follow = func(*Report) error { return failure }
		res, err := Run(t.Context(), o, accesslog.Schema{}, []Input{{name, func() (io.ReadCloser, error) {
			return follow(name)
		}}})
		if !errors.Is(err, failure) || res.Report.Requests != 1 {
			t.Errorf("%v, %d requests", err, res.Report.Requests)
		}
	})
}

// A log that is followed and has no request says so while it is followed, and why. One without a
// line says nothing.
func TestALogWithoutARequestIsFollowed(t *testing.T) {
	for log, want := range map[string]string{
		"nothing\n": "a.log: 1 line, none valid, 1 malformed\n", "": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "a.log")
			write(t, name, log)
			c := Command{Follow: true}
			var out strings.Builder
			o, seen := options(t, "1", 2), errors.New("seen")
			o.Follow = func(rep *Report) error {
				return errors.Join(c.refresh(rep, &out), seen)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*refreshInterval)
			defer cancel()
			_, err := Run(ctx, o, accesslog.Schema{}, []Input{{name, func() (io.ReadCloser, error) {
				return follow(name)
			}}})
			isMalformed := strings.Contains(out.String(), `want `)
			if !strings.Contains(out.String(), want) || isMalformed != (log != "") {
				t.Errorf("%q: %v, printed %q", log, err, &out)
			}
		})
	}
}
