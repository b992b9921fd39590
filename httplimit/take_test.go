package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Take decides as Admit does, and sets the same fields.
func TestTakeDecidesAsAdmit(t *testing.T) {
	policy := jsonRules("", jsonRule("a", `["header:k"]`, 2, `"on_missing": "reject"`),
		jsonRule("b", "[]", 3, ""), jsonRule("trial", "[]", 1, `"mode": "shadow"`))
	var events []Event
	record := func(_ *http.Request, e Event) { events = append(events, e) }
	hooks := WithHooks(Hooks{Granted: record, Refused: record, Shadow: record})
	taker, admitter := newSite(t, policy, hooks), newSite(t, policy)
	for i, key := range []string{"K: 1", "K: 1", "K: 1", "K: 2", "K: 2", "L: 1"} {
		h, w := http.Header{}, httptest.NewRecorder()
		d, _, refusal := taker.Take(h, request(key))
		want, _, granted := admitter.Admit(w, request(key))
		if d != want || (refusal == nil) != granted {
			t.Errorf("request %d: %+v %+v, want %+v %v", i, d, refusal, want, granted)
		}
		if refusal != nil {
			p := problem(t, w)
			if refusal.Status != p.Status || refusal.Detail != p.Detail {
				t.Errorf("request %d: %+v, want %+v", i, refusal, p)
			}
			w.Header().Del("Content-Type")
		}
		if sprint(h) != sprint(w.Header()) {
			t.Errorf("request %d: %v\nwant %v", i, h, w.Header())
		}
	}
	if a, b := sprint(statsOf(taker)), sprint(statsOf(admitter)); a != b {
		t.Errorf("%s\nwant %s", a, b)
	}
	if len(events) != 9 || slices.ContainsFunc(events, func(e Event) bool { return e.Writer != nil }) {
		t.Errorf("%d events: %+v", len(events), events)
	}
}

func statsOf(s *site) []RuleStats {
	all := s.Stats()
	for i := range all {
		all[i].Table, all[i].Limiter = tb.Stats{}, nil
	}
	return all
}

// A refusal has all rules that refuse, with their keys, and the longest of their waits.
func TestViolations(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("key", `["header:k"]`, 1, ""), jsonRule("all", "[]", 9, ""),
		sprintf(`{"name": "slow", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}`)), steady())
	s.Take(nil, request("K: v"))
	d, settlement, refusal := s.Take(nil, request("K: v"))
	wait, _ := refusal.RetryAfter()
	if d.Rule != "slow" || settlement != nil || wait.Truncate(time.Second) != 1000*time.Second {
		t.Errorf("%+v %+v", d, refusal)
	}
	var got []string
	for _, v := range refusal.Violations {
		got = append(got, sprint(v.Rule, " ", v.RetryAfter, " ", FormatKey(v.Key)))
	}
	want := []string{"key 1s header:k=v", "slow 16m40s ip:address=192.0.2.1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// wait returns the whole seconds of a refusal, or -1 if no wait helps.
func wait(r *Refusal) int {
	if wait, ok := r.RetryAfter(); ok {
		return int(wait / time.Second)
	}
	return -1
}

// A request that ends while it waits is refused with 499, or with 503 at the end of its time.
func TestTakeEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, cause := range map[int]error{
			statusClientGone:              context.Canceled,
			http.StatusServiceUnavailable: context.DeadlineExceeded,
		} {
			l := mustNew(t, delaying("r", "[]", 1, ""))
			l.Take(nil, request())
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(cause) })
			_, _, refusal := l.Take(nil, request().WithContext(lateContext{ctx}))
			if refusal == nil || refusal.Status != want || wait(refusal) != -1 {
				t.Errorf("%d: %+v", want, refusal)
			}
		}
	})
}

// lateContext is a context whose deadline is not known before it has passed.
type lateContext struct{ context.Context }

func (c lateContext) Err() error { return context.Cause(c.Context) }

// The application answers each kind of refusal, but not of a client that has left: see
// TestHangUpGivesTheSlotBack.
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
