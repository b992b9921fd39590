package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestPerAddress(t *testing.T) {
	served := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if d, ok := FromContext(r.Context()); ok {
			t.Errorf("without WithContext, the handler sees %+v", d)
		}
	})
	h := PerAddress(2, 0.001).Middleware(served)
	for i, want := range []int{200, 200, 429} {
		for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, by(address))
			if w.Code != want {
				t.Errorf("request %d of %s: status %d, want %d", i, address, w.Code, want)
			}
		}
	}
	for name, call := range map[string]func(){
		"function": func() { PerKey(1, 1, nil) },
		"capacity": func() { PerAddress(0, 1) },
		"rate":     func() { PerAddress(1, 0) },
		"option":   func() { PerAddress(1, 1, WithExtractor("", nil)) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || err == nil {
					t.Errorf("%s: PerAddress has not panicked with an error", name)
				}
			}()
			call()
		}()
	}
}

// Each value has a bucket, and the empty one is a value, too. No option replaces the function.
func TestPerKey(t *testing.T) {
	user := func(r *http.Request) string { return r.URL.Query().Get("user") }
	other := WithExtractor("key", func(r *http.Request) string { return r.URL.String() })
	h := PerKey(1, 0.001, user, other).Middleware(http.NotFoundHandler())
	for i, want := range []int{404, 429} {
		for _, target := range []string{"/?i=", "/?user=a&i=", "/?user=b&i="} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, by("2001:db8::"+strconv.Itoa(i), target+strconv.Itoa(i)))
			if w.Code != want {
				t.Errorf("request %d to %s: status %d, want %d", i, target, w.Code, want)
			}
		}
	}
}

func TestNilPolicyIsAnError(t *testing.T) {
	if l, err := New(nil); l != nil || err == nil {
		t.Errorf("%v, %v", l, err)
	}
	s := newSite(t, slowRule(1, 3))
	if err := s.SetPolicy(nil); err == nil || !strings.Contains(err.Error(), "the policy is nil") {
		t.Error(err)
	}
	s.granted(3, "K: 1") // as it was
}

func TestPoliciesBuiltInGoAreChecked(t *testing.T) {
	p := &Policy{Sets: []RuleSet{
		{Name: "a", Rules: []Rule{{Name: "x", OnMissing: 9}}},
		{Name: "a\n", Evaluation: 7, Fallback: &Rule{
			Name: "y", Keys: []string{"ip:asn"},
			Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: 1}, Cost: Cost{Fixed: -1, Min: 1e-50},
		}},
	}}
	_, err := New(p, WithClientAddress(ClientAddress{IPv6Bits: 129}),
		WithLimiterOptions(tb.WithMaxKeys(0)), WithClientAddress(ClientAddress{Header: "a b"}))
	for _, want := range []string{
		`policies[0].spec.rules[0].on_missing is 9`,
		`policies[0].spec.rules[0].limit is not valid: ratelimit: Capacity is 0, want 1 to 1073741824`,
		`policies[1].id must be printable ASCII (got "a\n")`,
		`policies[1].spec.evaluation is 7`,
		`policies[1].spec.fallback_limit.algorithm_config.fixed_cost must be 1e-40 to 1e+17 (got -1)`,
		`policies[1].spec.fallback_limit.algorithm_config.min_cost must be 1e-40 to 1e+17 (got 1e-50)`,
		`policies[1].spec.fallback_limit.limit_keys[0] must be ip:address, header:<name>, ` +
			`query:<name>, cookie:<name>, jwt:<claim> or a key that the application adds (got "ip:asn")`,
		`client address: IPv4 and IPv6 bits are 32 and 129, want 1 to 32 and 1 to 128`,
		`client address: Header is "a b", want A-Z a-z 0-9 _ -`,
		`ratelimit: WithMaxKeys is 0`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	p.Sets = p.Sets[1:]
	if _, err := New(p); !strings.Contains(err.Error(), `id must be printable ASCII (got "a\n")`) {
		t.Errorf("one set: %v", err)
	}
}
