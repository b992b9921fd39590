package tokenbucket

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// limiters are the limiters of the process, by poolKey. A limiter stays while a configuration has
// it, so its buckets outlive a reload.
var limiters = caddy.NewUsagePool()

// poolKey identifies a limiter. Settings are part of it, because they cannot change.
type poolKey struct{ name, settings string }

func newPoolKey(name string, s Settings) (poolKey, error) {
	text, err := json.Marshal(s)
	return poolKey{name, string(text)}, err
}

// limiter is a limiter that several configurations and handlers can share.
type limiter struct {
	*httplimit.Limiter
	policy *httplimit.Policy // in force; Caddy changes one configuration at a time
	store  *store            // of its buckets, or nil if they are in memory
}

// force puts a policy in force.
func (l *limiter) force(p *httplimit.Policy) error {
	if err := l.SetPolicy(p); err != nil {
		return err
	}
	l.policy = p
	if l.store != nil {
		l.store.forget(l.Stats())
	}
	return nil
}

// loadLimiter returns the limiter of the key, and makes it if there is none. If there is one, it
// checks that the limiter can have the policy, and does not change the limiter.
func loadLimiter(key poolKey, s Settings, p *httplimit.Policy) (*limiter, error) {
	v, loaded, err := limiters.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newLimiter(key.name, s, p)
	})
	if err != nil {
		return nil, err
	}
	l := v.(*limiter)
	if loaded && l.store != nil {
		if err = l.store.check(p); err != nil {
			_, _ = limiters.Delete(key) // the limiter stays, because it is in use
			return nil, err
		}
	}
	return l, nil
}

func newLimiter(name string, s Settings, p *httplimit.Policy) (l *limiter, err error) {
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	l = &limiter{policy: p}
	if s.Redis != nil {
		if l.store, err = openStore(name, s.Redis); err != nil {
			return nil, err
		}
		if err = l.store.check(p); err != nil {
			return nil, err
		}
		opts = append(opts, l.store.options()...)
	}
	l.Limiter, err = httplimit.New(p, opts...)
	return l, err
}

// Destruct implements caddy.Destructor. Requests of a configuration that Caddy has dropped may
// still use the limiter.
func (*limiter) Destruct() error { return nil }

var _ caddy.Destructor = (*limiter)(nil)
