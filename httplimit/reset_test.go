package httplimit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func (r referenceTier) Reset(ctx context.Context, key string) error {
	if _, ok := ctx.Deadline(); ok == r.store.patient || ctx.Err() != nil {
		r.store.t.Error("the store may take for ever, or no time at all")
	}
	r.Limiter.Reset(key)
	return r.store.step("reset", key)
}

// Reset takes each key as operators see it, and makes its bucket full and no other one.
func TestResetForgivesOneBucket(t *testing.T) {
	const policy = `{"rules": [
		{"name": "net", "limit_keys": ["ip:address/64,/56"], "algorithm_config": {
			"rps": 0.001, "burst": 9}},
		{"name": "key", "limit_keys": ["query:a", "ip:address", "= \""], "on_missing": "shared",
			"algorithm_config": {"rps": 0.001, "burst": 9, "tiers": {"by": "query:t",
				"limits": {"gold": {"rps": 0.001, "burst": 2}}}}},
		{"name": "trial", "limit_keys": [], "mode": "shadow", "on_limit": "delay", "max_delay": "1s",
			"algorithm_config": {"rps": 0.001, "burst": 9}}]}`
	key := WithExtractor(`= "`, func(r *http.Request) string { return r.URL.Query().Get("b") })
	missing := func(s *site, r *http.Request) (all []float64) {
		for _, e := range s.Explain(r) {
			all = append(all, float64(e.Limit.Capacity)-e.Level.Tokens)
		}
		return all
	}
	long := strings.Repeat("x", 129)
	var requests []*http.Request
	for _, target := range []string{
		"/", "/?a=1&b=2", "/?a=1%20x%3D&b=%22", "/?a=sha256:0123456789ab", "/?a=%ff&b=%0a&t=gold",
		"/?a=" + long + "&b=" + long + "x",
	} {
		requests = append(requests, by("", target), by("192.0.2.1", target), by("2001:db8::1", target))
	}
	for _, format := range []func([]KeyPart) string{FormatKey, FormatMaskedKey} {
		for _, inMemory := range []bool{true, false} {
			for _, r := range requests {
				opts := []Option{key}
				if !inMemory {
					opts = append(opts, WithStore(referenceStore{t: t}))
				}
				s := newSite(t, policy, opts...)
				other := by("2001:db8:9::1", "/?a="+long+"y")
				s.send(r)
				s.send(other)
				isHidden := false
				for _, e := range s.Explain(r) {
					text := format(e.Key)
					isHash := masked.MatchString(text) && !inMemory
					if err := s.Reset(e.Rule, text); errors.Is(err, ErrNoBucket) != isHash {
						t.Errorf("rule %s, key %s: %v", e.Rule, text, err)
					}
					isHidden = isHidden || isHash
				}
				if left := missing(s, r); slices.Max(left) > 0 && !isHidden {
					t.Errorf("in memory %v, %s: the buckets lack %v", inMemory, r.URL, left)
				}
				if left := missing(s, other)[:3]; slices.Min(left) < 1 {
					t.Errorf("in memory %v, %s: the buckets of another client lack %v", inMemory, r.URL, left)
				}
			}
		}
	}
}

func TestResetSaysWhatItDoesNotFind(t *testing.T) {
	s := newSite(t, threeRules)
	s.send(by("192.0.2.1", "K: a"))
	for _, c := range [][2]string{
		{"", "all requests"}, {"nets", "ip:address=192.0.2.1"}, {"all", ""},
		{"all", "ip:address=192.0.2.1"}, {"key", "header:k=a"},
		{"key", "header:x=a ip:address=192.0.2.1"}, {"key", "ip:address=192.0.2.1 header:k=a"},
		{"key", "header:k=a ip:address=192.0.2.1 "}, {"key", `header:k="a ip:address=192.0.2.1`},
		{"key", "header:k=a ip:address=192.0.2.1 header:k=a"}, {"key", "header:k=a ip:address=localhost"},
		{"key", "header:k=sha256:0123456789ab ip:address=192.0.2.1"},
		{"net/64", "ip:address=2001:db8::/64"}, {"net", "ip:address/64=2001:db8::/56"},
		{"net", "ip:address/64=192.0.2.0/24"}, {"net/48", "ip:address/64=2001:db8::/64"},
	} {
		if err := s.Reset(c[0], c[1]); !errors.Is(err, ErrNoBucket) {
			t.Errorf("%q: %v", c, err)
		}
	}
	for _, c := range [][2]string{ // that are full, or not as they are printed
		{"net", "ip:address/64=unknown"}, {"net", "ip:address/64=2001:db8::9"},
		{"net/48", "ip:address/48=2001:db8::9"}, {"net", "ip:address/64=::ffff:192.0.2.1"},
	} {
		if err := s.Reset(c[0], c[1]); err != nil {
			t.Errorf("%q: %v", c, err)
		}
	}
	if level := s.Explain(by("192.0.2.1", "K: a"))[0].Level; level.Full != 0 {
		t.Errorf("%+v after the address in another spelling", level)
	}
}

// A store that fails or cannot reset is another error than a bucket that is not there.
func TestResetNeedsItsStore(t *testing.T) {
	for _, store := range []Store{
		bareStore{referenceStore{t: t}},
		referenceStore{t: t, before: at("reset", fail)},
	} {
		s := newSite(t, threeRules, WithStore(store), WithTimeout(time.Minute))
		if err := s.Reset("all", "all requests"); err == nil || errors.Is(err, ErrNoBucket) {
			t.Errorf("%T: %v", store, err)
		}
	}
	s := newSite(t, threeRules, WithStore(referenceStore{t: t, patient: true}), WithTimeout(0))
	if err := s.Reset("all", "all requests"); err != nil {
		t.Errorf("without a time limit: %v", err)
	}
}
