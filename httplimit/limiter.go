package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Limiter applies a policy to requests. It is safe for concurrent use.
//
// Most applications wrap their handler with Middleware. Decide and Admit are for applications that
// cannot, and Take is for servers that write no http.ResponseWriter. SetPolicy replaces the policy,
// SetFields and SetSharedSecret change a setting, and Reset forgives one client. ClientAddress and
// TrustsPeer are for proxies.
type Limiter struct {
	settings
	policy atomic.Pointer[compiled]
	reload sync.Mutex    // is held while policy changes
	calls  sync.Pool     // of *call
	made   atomic.Uint32 // calls
	waits  waits
}

// PerAddress returns a limiter of capacity tokens for each client address, refilled at refillPerSec
// tokens a second, of which a request takes one: see tb.LimitPerSecond and WithClientAddress. The
// name of its rule is "per-address". It panics if an argument or option is out of range.
func PerAddress(capacity int, refillPerSec float64, opts ...Option) *Limiter {
	return per(policy.Rule{Name: "per-address", Keys: []string{"ip:address"}}, capacity, refillPerSec,
		opts)
}

// PerKey is PerAddress for each value of a function in place of each client address, such as the
// name of the user. All requests for which the function returns "" share one bucket. The function
// must be safe for concurrent use. The name of the rule is "per-key", and its key is "key".
func PerKey(
	capacity int, refillPerSec float64, key func(*http.Request) string, opts ...Option,
) *Limiter {
	rule := policy.Rule{Name: "per-key", Keys: []string{"key"}, OnMissing: policy.Shared}
	return per(rule, capacity, refillPerSec, append(slices.Clip(opts), WithExtractor("key", key)))
}

// per returns a limiter with one rule, to which it gives the limit.
func per(rule policy.Rule, capacity int, refillPerSec float64, opts []Option) *Limiter {
	var err error
	rule.Limit, err = tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	l, err := New(policy.Rules(rule), opts...)
	if err != nil {
		panic(err)
	}
	return l
}

// New returns a limiter that applies p. The error joins everything that is wrong with the
// policy and the options. It names the fields of the policy as in JSON.
func New(p *policy.Policy, opts ...Option) (*Limiter, error) {
	l := &Limiter{waits: waits{stopped: make(chan struct{})}}
	l.calls.New = func() any { return &call{l: l, stripe: l.made.Add(1)} }
	err := l.apply(opts)
	l.policy.Store(&compiled{liveSettings: l.liveSettings})
	if err = errors.Join(err, l.replace(p)); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return l, nil
}
