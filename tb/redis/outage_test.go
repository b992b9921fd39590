package redis

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// journal is the log of a limiter.
type journal struct {
	bytes.Buffer
	l *Limiter
}

func startJournal(t *testing.T) *journal {
	t.Helper()
	var j journal
	log := slog.New(slog.NewTextHandler(&j, nil))
	j.l = newLimiter(t, dial(t, redistest.Start(t)), slow, WithLogger(log))
	return &j
}

// fail makes calls that the server does not decide, although the breaker lets all of them pass.
func (j *journal) fail(t *testing.T, calls int) {
	t.Helper()
	script := j.l.script
	j.l.script = newScript("return redis.error_reply('test')")
	for range calls {
		j.l.nodes[0].breaker.probe = 0
		_ = failure(t.Context(), t, j.l, "a")
	}
	j.l.script, j.l.nodes[0].breaker.probe = script, 0
	// The outage lasts, also on a slow machine.
	j.l.outages.fails.last = j.l.local() + patient.Microseconds()
}

var times = regexp.MustCompile(`time=\S+ `)

// answer makes a call that the server decides, and wants what the log has since the last time.
func (j *journal) answer(t *testing.T, want string) {
	t.Helper()
	if _, err := j.l.Peek(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got := times.ReplaceAllString(j.String(), ""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	j.Reset()
}

const (
	begins = `level=WARN msg="tb/redis: the server does not decide" prefix=tb: ` +
		`error="tb/redis: rejected: test"` + "\n"
	ends = `level=INFO msg="tb/redis: the server decides again" lasted=3s undecided=`
)

// The log has two records of an outage, however many calls it concerns, and also if the server
// decides some calls meanwhile, or the breaker stays closed.
func TestLogOfAnOutage(t *testing.T) {
	j := startJournal(t)
	j.answer(t, "")
	end := func(want string) {
		t.Helper()
		o := &j.l.outages.fails
		o.last = j.l.local() - quiet.Microseconds()
		o.first = o.last - 3_000_000
		j.answer(t, want)
	}
	j.fail(t, 2*failuresInARow)
	j.answer(t, begins)
	j.fail(t, 1)
	other := &j.l.nodes[ranges-1].breaker
	other.state = BreakerOpen
	end("")
	other.state = BreakerClosed
	end(ends + "11\n")
	j.fail(t, 1)
	end(begins + ends + "1\n")
}

// A client that hangs up makes no outage. A value that is not a bucket does, and the server decides
// other calls then.
func TestCausesOfAnOutage(t *testing.T) {
	j := startJournal(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = failure(gone, t, j.l, "a")
	j.answer(t, "")
	do(t, j.l.client, "SET", "tb:{foreign}", "x")
	for range 2 {
		wantCause(t, failure(t.Context(), t, j.l, "foreign"), CauseForeign)
		j.l.outages.answers.last -= quiet.Microseconds()
	}
	if s := j.l.Stats(); s.Opened > 0 || bytes.Count(j.Bytes(), []byte("\n")) != 1 {
		t.Errorf("opened %d times:\n%s", s.Opened, j)
	}
	j.Reset()
	j.l.outages.answers.last = j.l.local() + patient.Microseconds()
	j.fail(t, 1) // is not hidden by the calls on the value
	j.answer(t, begins)
}
