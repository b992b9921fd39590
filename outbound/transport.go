package outbound

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Transport is an http.RoundTripper that lets each attempt wait for its turn. Use New to make one.
// It is safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	rules    []*rule
	store    httplimit.Store
	margin   time.Duration
	maxPause time.Duration
	retries  int
	hooks    Hooks
	logger   *slog.Logger

	isShared bool              // other processes may take from the buckets
	learns   bool              // a rule has no limit
	units    [anyUnit + 1]bool // of the rules
	lines    sync.Mutex        // guards the lines of the keys
	sent     atomic.Uint64
	failures atomic.Uint64
}

// New returns a Transport that sends requests with base, or with http.DefaultTransport if base is
// nil. The default rule has no limit, and hosts as keys. New panics if an option is out of range or
// the store fails.
func New(base http.RoundTripper, opts ...Option) *Transport {
	base = cmp.Or(base, http.DefaultTransport)
	t := &Transport{base: base, maxPause: time.Hour, logger: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		o(t)
	}
	if t.isShared = t.store != nil; !t.isShared {
		t.store = httplimit.Memory()
	}
	if len(t.rules) == 0 {
		Rules(Rule{Name: "per-host"})(t)
	}
	names := make(map[string]bool)
	for _, r := range t.rules {
		for n, name := 2, r.Name; names[r.Name]; n++ {
			r.Name = fmt.Sprintf("%s-%d", name, n)
		}
		names[r.Name] = true
		if err := t.start(r); err != nil {
			panic(err)
		}
	}
	return t
}

// RoundTrip implements http.RoundTripper. If it has not sent the request, it returns the error of
// the context, or a *tb.WaitError: the deadline is too near, or no wait can help.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := t.begin(r)
	defer a.end()
	var refused *http.Response // that the request is sent again for
	for tries := t.retries; ; tries-- {
		if err := a.await(); err != nil {
			if a.r.Body != nil {
				_ = a.r.Body.Close()
			}
			if refused != nil {
				err = nil
			}
			return refused, err
		}
		if refused != nil {
			_, _ = io.CopyN(io.Discard, refused.Body, 4096) // so that the connection is used again
			_ = refused.Body.Close()
		}
		t.sent.Add(1)
		response, err := t.base.RoundTrip(a.r)
		isRefusal := err == nil && a.obey(response)
		a.endTurns()
		if !isRefusal || tries <= 0 || !a.replay() {
			return response, err
		}
		refused = response
	}
}

var idempotent = []string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
	http.MethodPut, http.MethodDelete}

// replay makes the request ready to be sent again. It reports false if it must not be.
func (a *attempt) replay() bool {
	next := *a.r
	if !slices.Contains(idempotent, next.Method) && next.Header["Idempotency-Key"] == nil &&
		next.Header["X-Idempotency-Key"] == nil {
		return false
	}
	if next.Body != nil && next.Body != http.NoBody {
		if next.GetBody == nil {
			return false
		}
		var err error
		if next.Body, err = next.GetBody(); err != nil {
			return false
		}
	}
	a.r = &next
	return true
}

// CloseIdleConnections closes those of the base: http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
