package outbound

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Transport is an http.RoundTripper that lets each attempt wait for its turn. Use New to make one.
// It is safe for concurrent use.
type Transport struct {
	settings
	base     http.RoundTripper
	limits   []*rule
	isShared bool // other processes may take from the buckets
	learns   bool // a rule has no limit
	entered  atomic.Uint64
	sent     atomic.Uint64
	failures atomic.Uint64
}

// New returns a Transport that sends requests with base, or with http.DefaultTransport if base is
// nil. Without a rule, it has one for each host that has no limit. New panics if an option is out
// of range or the store fails.
func New(base http.RoundTripper, opts ...Option) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, settings: settings{
		maxPause: time.Hour, logger: slog.New(slog.DiscardHandler),
	}}
	for _, o := range opts {
		o(&t.settings)
	}
	if t.isShared = t.store != nil; !t.isShared {
		t.store = httplimit.Memory()
	}
	if len(t.rules) == 0 {
		t.rules = []Rule{{Name: "per-host"}}
	}
	names := make(map[string]int)
	for _, from := range t.rules {
		if names[from.Name]++; names[from.Name] > 1 {
			from.Name = fmt.Sprintf("%s-%d", from.Name, names[from.Name])
		}
		r, err := newRule(&t.settings, from)
		if err != nil {
			panic(err)
		}
		t.limits = append(t.limits, r)
		t.learns = t.learns || r.learns
	}
	return t
}

// RoundTrip implements http.RoundTripper. The error is a *tb.WaitError, without an attempt, if the
// deadline of the request's context is too near for the wait, or the cost is above the capacity.
// What a server says of limits is never an error.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := t.begin(r)
	defer a.end()
	var refused *http.Response
	for tries := t.retries; ; tries-- {
		if err := a.await(); err != nil {
			if refused != nil {
				return refused, nil
			}
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		if refused != nil && !a.again(refused) {
			a.giveBack(nil)
			return refused, nil
		}
		response, err := a.send()
		if err != nil {
			return nil, err
		}
		if !a.obey(response) || tries <= 0 || !canRepeat(r) {
			return response, nil
		}
		refused = response
	}
}

var idempotent = []string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
	http.MethodPut, http.MethodDelete}

// canRepeat reports whether a request may be sent twice.
func canRepeat(r *http.Request) bool {
	canReplay := r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
	return canReplay && (slices.Contains(idempotent, r.Method) ||
		r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil)
}

// again prepares the request for another attempt, after one that was refused.
func (a *attempt) again(refused *http.Response) bool {
	next := *a.r
	if a.r.Body != nil && a.r.Body != http.NoBody {
		body, err := a.r.GetBody()
		if err != nil {
			return false
		}
		next.Body = body
	}
	a.r = &next
	_, _ = io.CopyN(io.Discard, refused.Body, 4096) // so that the connection is used again
	_ = refused.Body.Close()
	return true
}

// CloseIdleConnections closes those of the base: http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
