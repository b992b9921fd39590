package httplimit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var errDown = errors.New("store is down")

// broken returns a site with three rules with bare limiters, of which the second fails.
func broken(t *testing.T, opts ...Option) (s *site, asked *[]string, events *[]Event) {
	asked, events = new([]string), new([]Event)
	limiters := WithLimiter(func(r Rule) (tb.Limiter, error) {
		return &otherLimiter{rule: r, asked: asked, fail: map[string]error{"down": errDown}}, nil
	})
	hooks := WithHooks(Hooks{
		Error:   func(_ *http.Request, e Event) { *events = append(*events, e) },
		Granted: func(*http.Request, Event) { t.Error("Granted was called") },
		Refused: func(*http.Request, Event) { t.Error("Refused was called") },
	})
	policy := jsonRules("", jsonRule("first", `["header:k"]`, 50, ""),
		jsonRule("down", `["header:k"]`, 5, ""), jsonRule("last", `["header:k"]`, 5, ""))
	return newSite(t, policy, append(opts, limiters, hooks)...), asked, events
}

func TestFailOpen(t *testing.T) {
	s, asked, events := broken(t, WithFields(Fields{Policy: true, XRateLimit: true}))
	for range 10 {
		w := s.get("K: 1")
		if w.Code != http.StatusOK || len(w.Header()) > 0 || s.seen != (Decision{}) {
			t.Fatalf("%d %v %+v", w.Code, w.Header(), s.seen)
		}
	}
	if s.served != 10 || !slices.Contains(*asked, "down 1") || slices.Contains(*asked, "last 1") {
		t.Errorf("%d served, asked %v", s.served, *asked)
	}
	st := s.Stats()
	if st[1].Errors != 10 || st[0].Errors != 0 || st[0].Granted != 0 || st[1].Granted != 0 {
		t.Errorf("%+v", st)
	}
	if len(*events) != 10 {
		t.Fatalf("%d events", len(*events))
	}
	if e := (*events)[0]; !errors.Is(e.Err, errDown) || e.Rule != "down" ||
		FormatKey(e.Key) != "header:k=1" {
		t.Errorf("%+v", e)
	}
}

func TestFailClosedIs503(t *testing.T) {
	s, _, events := broken(t, WithFailClosed())
	w := s.get("K: 1")
	if w.Code != http.StatusServiceUnavailable || s.served > 0 || len(*events) != 1 {
		t.Fatalf("%d, %d served, %d events", w.Code, s.served, len(*events))
	}
	wants(t, w, "Cache-Control: no-store", "RateLimit: ")
	if n, _ := strconv.Atoi(w.Header().Get("Retry-After")); n < 4 || n > 6 {
		t.Errorf("Retry-After: %d", n)
	}
	p := problem(t, w)
	if p.Type != "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" {
		t.Errorf("%+v", p)
	}
}

// A client can choose the deadline of a request, for example with Grpc-Timeout, and can disconnect.
// A limiter that honours its context must not fail because of that: the request would pass.
func TestClientsDoNotChooseTheTimeLimitOfALimiter(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	s := newSite(t, jsonRule("r", "[]", 5, ""), WithStore(referenceStore{t: t}))
	if w := s.send(request().WithContext(canceled)); w.Header().Get("RateLimit-Remaining") != "4" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, timeout := range []time.Duration{DefaultTimeout, 0} {
		asked := new([]string)
		s := newSite(t, jsonRules("", jsonRule("r", "[]", 2, "")), WithTimeout(timeout),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				return &otherLimiter{rule: r, asked: asked}, nil
			}))
		for i, ctx := range []context.Context{canceled, late, canceled, late} {
			w := s.send(request().WithContext(ctx))
			if want := []int{200, 200, 429, 429}[i]; w.Code != want {
				t.Errorf("timeout %v, request %d: status %d, want %d", timeout, i, w.Code, want)
			}
		}
		if st := s.Stats()[0]; st.Errors > 0 || len(*asked) != 4 {
			t.Errorf("%+v, asked %v", st, *asked)
		}
	}
	// The limiters of tb/cas do not look at the context.
	s = newSite(t, jsonRules("", jsonRule("r", "[]", 5, "")))
	if w := s.send(request().WithContext(canceled)); w.Header().Get("RateLimit-Remaining") != "4" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestShadowRuleThatFails(t *testing.T) {
	var events []Event
	s := newSite(t, jsonRules("", jsonRule("down", "[]", 5, `"mode": "shadow"`)),
		WithFailClosed(), WithHooks(Hooks{
			Error:  func(_ *http.Request, e Event) { events = append(events, e) },
			Shadow: func(*http.Request, Event) { t.Error("Shadow was called") },
		}), WithLimiter(func(r Rule) (tb.Limiter, error) {
			return &otherLimiter{
				rule: r, asked: new([]string),
				fail: map[string]error{"down": errDown},
			}, nil
		}))
	if w := s.get(); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	if st := s.Stats()[0]; len(events) != 1 || !events[0].Shadow || st.Errors != 1 ||
		st.ShadowGranted+st.ShadowRefused > 0 {
		t.Errorf("%+v %+v", events, st)
	}
}
