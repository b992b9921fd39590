package httplimit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Section 7: what happens if a limiter cannot decide.

var errDown = errors.New("store is down")

// broken is a site with rules of three limiters: one of tb/cas, one that works and one that
// does not.
func broken(t *testing.T, opts ...Option) (s *site, asked *[]string, told *[]Event) {
	asked, told = new([]string), new([]Event)
	limiters := WithLimiter(func(r Rule) (tb.Limiter, error) {
		if r.Name == "cas" {
			return nativeLimiter(r, time.Unix(1_800_000_000, 0))
		}
		return &otherLimiter{rule: r, asked: asked, fail: map[string]error{"down": errDown}}, nil
	})
	hooks := WithHooks(Hooks{
		Error:   func(_ *http.Request, e Event) { *told = append(*told, e) },
		Granted: func(*http.Request, Event) { t.Error("told of a grant") },
		Refused: func(*http.Request, Event) { t.Error("told of a refusal") },
	})
	policy := jsonRules("", jsonRule("cas", `["header:k"]`, 5, ""), jsonRule("down",
		`["header:k"]`, 5, ""))
	return newSite(t, policy, append(opts, limiters, hooks)...), asked, told
}

func TestS7FailsOpenWithTheStateUnchanged(t *testing.T) {
	s, asked, told := broken(t, WithPolicyField(), WithXRateLimit())
	for range 10 {
		w := s.get("K: 1")
		if w.Code != http.StatusOK || len(w.Header()) > 0 || s.seen != (Decision{}) {
			t.Fatalf("%d %v %+v", w.Code, w.Header(), s.seen)
		}
	}
	if s.served != 10 || !slices.Contains(*asked, "down 1") {
		t.Errorf("%d served, asked %v", s.served, *asked)
	}
	if e := s.Explain(request("K: 1"))[0]; e.Remaining != 4 {
		t.Errorf("%+v was charged", e)
	}
	st := s.Stats()
	if st[1].Errors != 10 || st[0].Errors != 0 || st[0].Granted != 0 || st[1].Granted != 0 {
		t.Errorf("%+v", st)
	}
	if len(*told) != 10 {
		t.Fatalf("told %d times", len(*told))
	}
	if e := (*told)[0]; !errors.Is(e.Err, errDown) || e.Rule != "down" ||
		FormatKey(e.Key) != "header:k=1" {
		t.Errorf("%+v", e)
	}
}

func TestS7FailClosedIs503(t *testing.T) {
	s, _, told := broken(t, WithFailClosed())
	w := s.get("K: 1")
	if w.Code != http.StatusServiceUnavailable || s.served > 0 || len(*told) != 1 {
		t.Fatalf("%d, %d served, told %d times", w.Code, s.served, len(*told))
	}
	wants(t, w, "Cache-Control: no-store", "RateLimit: ", "Retry-After: ")
	problem(t, w)
	if e := s.Explain(request("K: 1"))[0]; e.Remaining != 4 {
		t.Errorf("%+v was charged", e)
	}
}

// A limiter that heeds the request's context fails if the client hangs up. To let such
// requests pass would be to offer a way around the limit.
func TestS7HangingUpIsNoWayPastALimiter(t *testing.T) {
	s, _, told := broken(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := s.send(request("K: 1").WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable || s.served > 0 || len(*told) != 1 ||
		!errors.Is((*told)[0].Err, context.Canceled) {
		t.Errorf("%d, %d served, told %+v", w.Code, s.served, *told)
	}
	if e := s.Explain(request("K: 1"))[0]; e.Remaining != 4 {
		t.Errorf("%+v was charged", e)
	}
	// Who runs out of time has not hung up: the store is too slow.
	ctx, cancel = context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if w := s.send(request("K: 1").WithContext(ctx)); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	// The limiters of tb/cas do not look at it.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	s = newSite(t, jsonRules("", jsonRule("r", "[]", 5, "")))
	if w := s.send(request().WithContext(ctx)); w.Header().Get("RateLimit-Remaining") != "4" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestS7ShadowRuleThatFails(t *testing.T) {
	var told []Event
	s := newSite(t, jsonRules("", jsonRule("down", "[]", 5, `"mode": "shadow"`)),
		WithFailClosed(), WithHooks(Hooks{
			Error:  func(_ *http.Request, e Event) { told = append(told, e) },
			Shadow: func(*http.Request, Event) { t.Error("told of a decision") },
		}), WithLimiter(func(r Rule) (tb.Limiter, error) {
			return &otherLimiter{rule: r, asked: new([]string),
				fail: map[string]error{"down": errDown}}, nil
		}))
	if w := s.get(); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	if st := s.Stats()[0]; len(told) != 1 || !told[0].Shadow || st.Errors != 1 ||
		st.ShadowGranted+st.ShadowRefused > 0 {
		t.Errorf("%+v %+v", told, st)
	}
}
