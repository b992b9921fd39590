package httplimit

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Limiter applies a policy to requests. It is safe for concurrent use.
//
// Most applications wrap their handler with Middleware. Decide and Admit are for applications that
// cannot, and Take is for servers that write no http.ResponseWriter. Explain reports what the rules
// would decide, and takes nothing. SetPolicy replaces the policy, SetFields and SetSharedSecret
// change a setting, and Stats reports what the rules have counted. StopWaiting is for the end of a
// server whose policy delays requests. ClientAddress and TrustsPeer are for proxies.
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
	limit, err := tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	rule := policy.Rule{Name: "per-address", Keys: []string{"ip:address"}, Limit: limit}
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
	optionErr := l.apply(opts)
	first, err := l.compile(p, nil)
	if err = errors.Join(optionErr, err); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	first.liveSettings = l.liveSettings
	first.startControls()
	l.policy.Store(first)
	return l, nil
}

// SetPolicy replaces the policy, from the next request on. A rule keeps its buckets and counts
// if its set, name and keys stay the same. If its limit changes, each bucket keeps its tokens, but
// not more than the new capacity, and its debt: see cas.Limiter.SetLimit. If p has an
// error, or a limiter of a Store does not take its limit, the policy and all limits stay as they
// were.
func (l *Limiter) SetPolicy(p *policy.Policy) error {
	l.reload.Lock()
	defer l.reload.Unlock()
	before := l.policy.Load()
	next, err := l.compile(p, before)
	if err == nil {
		err = next.setLimits(before)
	}
	if err != nil {
		return fmt.Errorf("httplimit: the policy stays as it was: %w", err)
	}
	next.liveSettings = before.liveSettings
	next.startControls()
	l.policy.Store(next)
	return nil
}

// SetFields changes which fields responses have, from the next request on.
func (l *Limiter) SetFields(f Fields) error {
	if err := f.prepare(); err != nil {
		return fmt.Errorf("httplimit: %w", err)
	}
	l.setLive(func(k *liveSettings) { k.fields = f })
	return nil
}

// SetSharedSecret changes the text of WithSharedSecret, from the next request on.
func (l *Limiter) SetSharedSecret(text string) {
	l.setLive(func(k *liveSettings) { k.shared = text })
}

func (l *Limiter) setLive(change func(*liveSettings)) {
	l.reload.Lock()
	defer l.reload.Unlock()
	next := *l.policy.Load()
	change(&next.liveSettings)
	l.policy.Store(&next)
}
