package outbound

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Rule is one limit on what a Transport sends. Its functions must be safe for concurrent use, and
// must not change the request, except for its body as usage.Estimate does.
type Rule struct {
	// Name is the name of the rule in Stats, in hooks and in the store. It is ASCII without braces.
	// If several rules of a Transport have it, those after the first have a number at its end.
	Name string
	// Limit is the burst and the rate of each key. The zero Limit is learned from what the server
	// says: docs/outbound.md has how.
	Limit tb.Limit
	// Key returns the key of a request, such as the token that the server counts by. The default is
	// Host.
	Key func(*http.Request) string
	// Unit is what the limit counts: Requests, the default, or Tokens.
	Unit Unit
	// Cost returns the tokens that a request takes. The default is 1, which also takes the place of
	// a cost that is not above 0.
	Cost func(*http.Request) float64
	// Usage returns the reader of a response, or nil. If it is set, the cost is an estimate, and at
	// most the capacity of Limit. It is settled with the usage when the body of the response has
	// ended or is closed: see package usage. A refused attempt is settled with 0.
	Usage func(*http.Request, http.Header) usage.Reader
}

// Unit is what a limit counts. A server that says of which limit it speaks is obeyed for the rules
// with that unit.
type Unit uint8

// The units are requests and, for the APIs of language models, tokens.
const (
	Requests Unit = iota
	Tokens
	anyUnit // the server does not say it
)

// Host returns the host and port of a request's URL in lower case. The port of https is left out.
func Host(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	host := strings.ToLower(r.URL.Host)
	if r.URL.Scheme == "http" && r.URL.Port() == "" {
		return strings.TrimSuffix(host, ":") + ":80"
	}
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":")
}

// Option configures a Transport.
type Option func(*Transport)

// PerHost adds a limit of capacity requests for each host and port, refilled at refillPerSec a
// second: see tb.LimitPerSecond. It is a Rule with the name "per-host". It panics if an argument is
// out of range.
func PerHost(capacity int, refillPerSec float64) Option {
	limit, err := tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	return Rules(Rule{Name: "per-host", Limit: limit})
}

// Rules adds limits. A request takes its costs from all of them, or waits.
func Rules(rules ...Rule) Option {
	return func(t *Transport) {
		for _, r := range rules {
			t.rules = append(t.rules, &rule{Rule: r})
		}
	}
}

// WithStore sets a store of the buckets, which other processes may share, such as the *redis.Store
// of package tb/redis. Its limiters must have the method
//
//	Hold(ctx context.Context, key string, until time.Time) error
//
// with which nothing is granted on the key before until. Then its bucket is empty, and is refilled.
// The default is the memory of the process.
func WithStore(store httplimit.Store) Option { return func(t *Transport) { t.store = store } }

// Margin takes what each Rule.Limit supplies in d off its capacity. If the time from the Transport
// to the server varies by d at most, the server sees no more than the Limit of the rule. New panics
// if that leaves less than one token.
func Margin(d time.Duration) Option { return func(t *Transport) { t.margin = d } }

// WithMaxPause sets the longest pause that a server can cause. The default is an hour. With 0 or
// less there is no pause, and no limit is learned.
func WithMaxPause(d time.Duration) Option { return func(t *Transport) { t.maxPause = d } }

// WithRetries sets how often a request that the server refuses is sent again, after the pause. The
// default is 0. It is not sent again if its body has no GetBody, if its method is neither
// idempotent nor accompanied by the field Idempotency-Key, or if its context ends before. The
// caller gets the last answer. A transport that retries may be above this one.
func WithRetries(most int) Option { return func(t *Transport) { t.retries = most } }

// Hooks are functions that see what a Transport does. Each of them may be nil. They must be safe
// for concurrent use, should return soon, must not send requests with the Transport, and must leave
// the body of a response to its caller. rule is the name of a rule.
type Hooks struct {
	// Waits is called before an attempt waits.
	Waits func(r *http.Request, rule string, wait time.Duration)
	// Held is called when the server has said that the key of the attempt has to pause.
	Held func(r *http.Request, rule string, pause time.Duration)
	// Refused is called when the server has refused an attempt, although it was its turn.
	Refused func(r *http.Request, rule string, response *http.Response)
	// Error is called if the store has failed. The attempt is sent without that limit.
	Error func(r *http.Request, err error)
}

// WithHooks sets the hooks.
func WithHooks(h Hooks) Option { return func(t *Transport) { t.hooks = h } }

// WithLogger logs pauses, refusals and failures of the store, and no keys, which may be secret.
func WithLogger(l *slog.Logger) Option { return func(t *Transport) { t.logger = l } }
