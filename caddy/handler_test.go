package tokenbucket

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// newHandler returns a handler with a policy that no Caddy runs.
func newHandler(t testing.TB, document string) *Handler {
	t.Helper()
	var s Settings
	opts, err := s.options(placeholders)
	if err != nil {
		t.Fatal(err)
	}
	p, err := httplimit.ParsePolicyFor([]byte(document), opts...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.limiter(p, nil, placeholders)
	if err != nil {
		t.Fatal(err)
	}
	return &Handler{Name: "test", limiter: &limiter{Limiter: l}, app: &App{events: zap.NewNop()}}
}

// serve passes a request to the handler as Caddy does.
func serve(
	h *Handler, r *http.Request, next caddyhttp.Handler,
) (*httptest.ResponseRecorder, error) {
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
	return w, h.ServeHTTP(w, r, next)
}

func nothing(http.ResponseWriter, *http.Request) error { return nil }

// Caddy writes the response to an error after all handlers. An adaptive rule sees its status all
// the same, so its rate falls with errors of the upstream only.
func TestAnAdaptiveRuleSeesErrors(t *testing.T) {
	const policy = `{"name": "r", "limit_keys": [], "algorithm_config": {
		"tokens_per_second": 100, "burst": 10,
		"adaptive": {"min": 1, "max": 100, "target_p99": "1s"}}}`
	for err, falls := range map[error]bool{
		caddyhttp.Error(http.StatusBadGateway, errors.New("no upstream")): true,
		caddyhttp.Error(http.StatusNotFound, errors.New("no file")):       false,
		errors.New("status 500"): false,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(t, policy)
			next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return err })
			for range 1000 {
				_, got := serve(h, httptest.NewRequest(http.MethodGet, "/", nil), next)
				if got != nil && !errors.Is(got, err) { // nil is a refusal
					t.Fatalf("the error is %v, want %v", got, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
			now := h.limiter.Stats()[0].Limit
			if rate := float64(now.Tokens) / now.Per.Seconds(); (rate < 50) != falls {
				t.Errorf("%v: the rate is %v, and started at 100", err, rate)
			}
		})
	}
}

// An error costs the estimate, or the bytes that the handler has written. A panic costs what the
// header has said before. A handler still has the body after a placeholder has read it.
func TestErrorsAndPanicsSettle(t *testing.T) {
	failed := caddyhttp.Error(http.StatusNotFound, errors.New("no file"))
	fails := func(http.ResponseWriter, *http.Request) error { return failed }
	panics := func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Cost", "2")
		w.WriteHeader(http.StatusOK)
		panic(failed)
	}
	rereads := func(_ http.ResponseWriter, r *http.Request) error {
		_, _ = replacer(r).Get("http.request.body") // which puts what it has read in place of it
		_, err := r.Body.Read([]byte{0})
		return err
	}
	const byField = `response:header:x-cost"`
	const byStatus = `response:status", "status_costs": {"404": 1, "2xx": 0}`
	for _, c := range []struct {
		source string
		next   caddyhttp.HandlerFunc
		left   float64
	}{
		{byField, fails, 6}, {byField, panics, 8}, {`response:bytes"`, fails, 10},
		{byStatus, fails, 9}, {byStatus, nothing, 10}, {byStatus, rereads, 10}, {byStatus, panics, 10},
		{byStatus, func(http.ResponseWriter, *http.Request) error { panic(failed) }, 6},
	} {
		h := newHandler(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"default_cost": 4,
			"tokens_per_second": 0.001, "burst": 10, "cost_source": "`+c.source+`}}`)
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
		func() {
			defer func() { _ = recover() }()
			_, _ = serve(h, r, c.next)
		}()
		if got := h.limiter.Explain(r)[0].Level.Tokens; math.Round(got) != c.left {
			t.Errorf("%s: %v left, want %v", c.source, got, c.left)
		}
	}
}

func TestAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, `{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1h",
			"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}`)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		for _, status := range []int{200, statusClientGone} {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			if w, err := serve(h, r, caddyhttp.HandlerFunc(nothing)); err != nil || w.Code != status {
				t.Errorf("status %d, want %d (%v)", w.Code, status, err)
			}
		}
	})
}
