package tokenbucket

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
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
func serve(h *Handler, r *http.Request, next caddyhttp.Handler) error {
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
	return h.ServeHTTP(w, r, next)
}

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
				got := serve(h, httptest.NewRequest(http.MethodGet, "/", nil), next)
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

// An error costs the estimate, or the bytes that the handler has written.
func TestAnErrorSettles(t *testing.T) {
	for source, left := range map[string]float64{"response:header:x-cost": 6, "response:bytes": 10} {
		h := newHandler(t, `{"name": "r", "limit_keys": [], "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 10, "default_cost": 4, "cost_source": "`+source+`"}}`)
		failed := caddyhttp.Error(http.StatusNotFound, errors.New("no file"))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return failed })
		if err := serve(h, r, next); !errors.Is(err, failed) {
			t.Error(err)
		}
		if got := h.limiter.Explain(r)[0].Level.Tokens; math.Round(got) != left {
			t.Errorf("%s: %v left, want %v", source, got, left)
		}
	}
}

func TestAPanicSettles(t *testing.T) {
	h := newHandler(t, `{"name": "r", "limit_keys": [], "algorithm_config": {
		"tokens_per_second": 0.001, "burst": 10, "cost_source": "response:header:x-cost",
		"default_cost": 9, "max_cost": 10}}`)
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Cost", "2")
		w.WriteHeader(http.StatusOK)
		panic(http.ErrAbortHandler)
	})
	func() {
		defer func() { _ = recover() }()
		_ = serve(h, httptest.NewRequest(http.MethodGet, "/", nil), next)
	}()
	if s := h.limiter.Stats()[0]; s.Settled != 1 || s.Table.Settled != 2 {
		t.Errorf("%d responses with %v tokens are settled, want 1 with 2", s.Settled, s.Table.Settled)
	}
}

// The placeholders also have the rule of a request that ended while it waited.
func TestAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, `{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1h",
			"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}`)
		repl := caddy.NewReplacer()
		status := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			r = caddyhttp.PrepareRequest(r, repl, w, &caddyhttp.Server{})
			if err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(
				func(http.ResponseWriter, *http.Request) error { return nil },
			)); err != nil {
				t.Error(err)
			}
			return w.Code
		}
		if got := status(t.Context()); got != 200 {
			t.Errorf("status %d, want 200", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if got := status(ctx); got != statusClientGone {
			t.Errorf("status %d, want %d", got, statusClientGone)
		}
		if rule, _ := repl.GetString(placeholderRule); rule != "r" {
			t.Errorf("the rule is %q, want r", rule)
		}
	})
}
