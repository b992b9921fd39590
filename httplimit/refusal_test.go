package httplimit

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
)

// The application answers each kind of refusal, and none of a client that has left.
func TestTheApplicationAnswers(t *testing.T) {
	var down error
	var seen []*Refusal
	s := newSite(t, jsonRule("r", `["header:k"]`, 1, `"on_missing": "reject"`), steady(),
		WithStore(referenceStore{t: t, before: func(string, string) error { return down }}),
		WithFailClosed(), WithRefusal(func(w http.ResponseWriter, _ *http.Request, r *Refusal) {
			seen = append(seen, r)
			http.Error(w, r.Detail, r.Status)
		}))
	s.get("K: 1")
	for _, c := range []struct {
		lines []string
		down  error
		want  int
		retry int
	}{
		{[]string{"K: 1"}, nil, 429, 1}, {nil, nil, 400, -1},
		{[]string{"K: 1"}, errors.New("down"), 503, 4},
	} {
		down, seen = c.down, nil
		w := s.get(c.lines...)
		if w.Code != c.want || len(seen) != 1 {
			t.Fatalf("status %d, want %d, %d calls", w.Code, c.want, len(seen))
		}
		wants(t, w, "Cache-Control: no-store", "Content-Type: text/plain; charset=utf-8")
		if c.want == 429 {
			wants(t, w, "Retry-After: 1", `RateLimit: "r";r=0;t=1`)
		}
		if seen[0].Status != c.want || wait(seen[0]) != c.retry ||
			(len(seen[0].Violations) == 1) != (c.want == 429) {
			t.Errorf("%+v", seen[0])
		}
	}
	if s.served != 1 {
		t.Errorf("%d requests are served", s.served)
	}
}

// A client that has left while its request waited gets no answer of the application.
func TestTheApplicationDoesNotAnswerClientsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		q := newQueue(t, delaying("r", "[]", 10, ""),
			WithRefusal(func(http.ResponseWriter, *http.Request, *Refusal) { calls++ }))
		for range 10 {
			q.get("x")
		}
		left, cancel := context.WithCancel(t.Context())
		gone := q.send(left, "left")
		cancel()
		q.pending.Wait()
		if gone.Code != statusClientGone || calls != 0 {
			t.Errorf("status %d, %d calls", gone.Code, calls)
		}
	})
}
