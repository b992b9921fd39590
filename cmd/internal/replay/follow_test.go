package replay

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// piped returns a log that gets the lines that are written to it.
func piped() (Input, io.WriteCloser) {
	r, w := io.Pipe()
	return Input{"stdin", func() (io.ReadCloser, error) { return r, nil }}, w
}

func write(t *testing.T, log io.Writer, lines string) {
	t.Helper()
	if _, err := io.WriteString(log, lines); err != nil {
		t.Error(err)
	}
}

// A log is followed while it grows. The last report is of all its lines.
func TestALogIsFollowed(t *testing.T) {
	policy, err := policyOptions(t, `{"name": "r", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 1, "burst": 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{options(t, "1", 2), policy} {
		synctest.Test(t, func(t *testing.T) {
			in, log := piped()
			var reported atomic.Pointer[Report]
			o.Follow = func(rep *Report) error {
				reported.Store(rep)
				return nil
			}
			check := func(requests, refused uint64) {
				t.Helper()
				time.Sleep(refreshInterval)
				synctest.Wait()
				latest := reported.Load()
				var got uint64
				if latest.Policy != nil {
					got = latest.Policy.Granted
				} else {
					got = latest.Limit.Granted
				}
				if latest.Requests != requests || got != requests-refused || len(latest.Files) != 1 {
					t.Errorf("%d requests, %d granted in %+v; want %d with %d refused", latest.Requests, got,
						latest.Files, requests, refused)
				}
			}
			done := make(chan error)
			go func() {
				res, err := Run(t.Context(), o, []Input{in})
				reported.Store(&res.Report)
				done <- err
			}()
			write(t, log, strings.Repeat(line("192.0.2.1", 1, 1), 3))
			check(3, 1)
			check(3, 1)
			write(t, log, line("192.0.2.1", 1, 1)+line("192.0.2.2", 1, 1)+
				strings.TrimSuffix(line("192.0.2.1", 10, 1), "\n"))
			check(5, 2) // the last line has no end yet
			log.Close()
			err := <-done
			if end := reported.Load(); err != nil || end.Interrupted || end.Requests != 6 {
				t.Errorf("%v, %+v", err, end)
			}
		})
	}
}

// A report that cannot be written ends the replay.
func TestAFailedReportEndsTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, log := piped()
		go write(t, log, line("a", 1, 1))
		o, failure := options(t, "1", 2), errors.New("no space")
		o.Follow = func(*Report) error { return failure }
		res, err := Run(t.Context(), o, []Input{in})
		if !errors.Is(err, failure) || res.Report.Requests != 1 {
			t.Errorf("%v, %d requests", err, res.Report.Requests)
		}
	})
}
