package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
)

// statuses is a ResponseWriter that keeps all statuses.
type statuses struct {
	*httptest.ResponseRecorder
	all []int
}

func (w *statuses) WriteHeader(status int) { w.all = append(w.all, status) }

// The application answers each kind of refusal. The status is right whether it writes one or not.
func TestTheApplicationAnswers(t *testing.T) {
	var down error
	store := WithStore(referenceStore{t: t, before: func(step, _ string) error {
		if step == "take all" {
			return down
		}
		return nil
	}})
	for name, tt := range map[string]struct {
		write func(w http.ResponseWriter)
		want  int // 0 for the status of the refusal
		body  string
	}{
		"nothing": {func(http.ResponseWriter) {}, 0, ""},
		"a body":  {func(w http.ResponseWriter) { fmt.Fprint(w, "slow down") }, 0, "slow down"},
		"flush": {func(w http.ResponseWriter) {
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "later")
		}, 0, "later"},
		"its own code": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }, 418, ""},
	} {
		var seen []*Refusal
		s := newSite(t, jsonRule("r", `["header:k"]`, 1, `"on_missing": "reject"`), store, steady(),
			WithFailClosed(), WithRefusal(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				refusal, ok := RefusalFromContext(r.Context())
				if !ok {
					t.Error("no refusal")
				}
				seen = append(seen, refusal)
				tt.write(w)
			})))
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
			want := tt.want
			if want == 0 {
				want = c.want
			}
			if w.Code != want || w.Body.String() != tt.body || len(seen) != 1 {
				t.Fatalf("%s: status %d, want %d, body %q, %d calls", name, w.Code, want, w.Body, len(seen))
			}
			wants(t, w, "Cache-Control: no-store", "Content-Type: "+w.Header().Get("Content-Type"))
			if c.want == 429 {
				wants(t, w, "Retry-After: 1", `RateLimit: "r";r=0;t=1`)
			}
			if seen[0].Status != c.want || wait(seen[0]) != c.retry ||
				(len(seen[0].Violations) == 1) != (c.want == 429) {
				t.Errorf("%s: %+v", name, seen[0])
			}
			down = nil
		}
		if s.served != 1 {
			t.Errorf("%s: %d requests are served", name, s.served)
		}
	}
	if _, ok := RefusalFromContext(t.Context()); ok {
		t.Error("a refusal without a request")
	}
}

// A handler may send hints, and write its own status once.
func TestTheApplicationWritesOneStatus(t *testing.T) {
	for _, tt := range []struct{ writes, want []int }{
		{[]int{103}, []int{103, 400}}, {[]int{418}, []int{418}}, {nil, []int{400}},
	} {
		w := &statuses{ResponseRecorder: httptest.NewRecorder()}
		l := mustNew(t, jsonRule("r", `["header:k"]`, 1, `"on_missing": "reject"`),
			WithRefusal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, status := range tt.writes {
					w.WriteHeader(status)
				}
			})))
		if l.Decide(w, request()); !slices.Equal(w.all, tt.want) {
			t.Errorf("the handler writes %v: %v, want %v", tt.writes, w.all, tt.want)
		}
	}
}

// A handler that takes over the connection, to close it, writes the response itself.
func TestTheApplicationHijacks(t *testing.T) {
	l := mustNew(t, jsonRule("r", `["header:k"]`, 1, `"on_missing": "reject"`),
		WithRefusal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
				t.Error(err)
			}
		})))
	w := &statuses{ResponseRecorder: httptest.NewRecorder()}
	l.Decide(struct {
		*statuses
		http.Hijacker
	}{w, hijackable{}}, request())
	if len(w.all) > 0 {
		t.Errorf("status %v is written to a connection that the handler has", w.all)
	}
}

// A client that has left while its request waited gets no answer of the application.
func TestTheApplicationDoesNotAnswerClientsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		q := newQueue(t, delaying("r", "[]", 10, ""),
			WithRefusal(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ })))
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
