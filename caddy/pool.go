package tokenbucket

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// limiters are the limiters of the process, by poolKey. A limiter stays while a configuration has
// it, so its buckets outlive a reload.
var limiters = caddy.NewUsagePool()

// poolKey identifies a limiter. The settings that cannot change while it lives are part of it.
type poolKey struct{ name, settings string }

func newPoolKey(name string, s Settings) poolKey {
	s.Look = Look{}
	text, _ := json.Marshal(s) // never fails: texts and whole numbers
	return poolKey{name, string(text)}
}

// limiter is a limiter that several configurations and handlers can share.
type limiter struct {
	*httplimit.Limiter
	inForce content      // Caddy changes one configuration at a time
	next    matchers     // of the policy that is being put in force
	store   *redis.Store // of its buckets, or nil if they are in memory
}

// content is what a configuration changes in a limiter.
type content struct {
	policy   *httplimit.Policy
	matchers matchers
	look     Look
}

// force puts a policy and a look in force.
func (l *limiter) force(c content) error {
	l.next = c.matchers
	if err := l.SetPolicy(c.policy); err != nil {
		return err
	}
	l.SetSharedSecret(c.look.SharedSecret)
	l.inForce = c
	return l.SetFields(c.look.fields())
}

// loadLimiter returns the limiter of the key, and makes it if there is none. If there is one, it
// checks that its store can have the policy, and does not change the limiter.
func loadLimiter(key poolKey, s Settings, c content) (*limiter, error) {
	v, loaded, err := limiters.LoadOrNew(key, func() (caddy.Destructor, error) {
		l := &limiter{inForce: c, next: c.matchers}
		if s.Redis != nil {
			var err error
			if l.store, err = s.Redis.open(key.name); err != nil {
				return nil, fmt.Errorf("redis: %w", err)
			}
		}
		var err error
		l.Limiter, err = s.limiter(c.policy, l.store, l.extractor)
		return l, err
	})
	if err != nil {
		return nil, err
	}
	l := v.(*limiter)
	if loaded && l.store != nil {
		if _, err = s.limiter(c.policy, l.store, c.matchers.extractor); err != nil {
			_, _ = limiters.Delete(key) // the limiter stays, because it is in use
			return nil, err
		}
	}
	return l, nil
}

// extractor returns the function that reads a key of the policy that is being put in force.
func (l *limiter) extractor(key string) (func(*http.Request) string, error) {
	return l.next.extractor(key)
}

// Destruct implements caddy.Destructor. Requests of a configuration that Caddy has dropped may
// still use the limiter.
func (*limiter) Destruct() error { return nil }
