package httplimit

import (
	"net/http"
	"strings"
	"testing"
)

func TestValuesOf1MiB(t *testing.T) {
	s := newSite(t, jsonRules(`"jwt": "unverified"`, `{"name": "r",
		"limit_keys": ["header:k", "jwt:a", "query:q", "ip:address"],
		"on_missing": "shared", "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 2, "cost_source": "header:w", "max_cost": 2}}`),
		WithClientAddress(ClientAddress{Trusted: prefixes(t, "192.0.2.0/24")}))
	for _, c := range []string{"x", ",", ".", "%", "9", " ", "\xff", "[", ":", "10.0.0.1,"} {
		v := strings.Repeat(c, 1<<20/len(c))
		r := request()
		r.URL.RawQuery = "q=" + v
		r.Header = http.Header{
			"K": {v}, "W": {v}, "X-Forwarded-For": {v},
			"Authorization": {"Bearer " + v},
		}
		if got := s.costs(r); got != 2 {
			t.Errorf("%q: cost %v", c, got)
		}
		if a, b := s.send(r).Code,
			s.send(r).Code; a != http.StatusOK || b != http.StatusTooManyRequests {
			t.Errorf("%q: status %d and %d", c, a, b)
		}
		if key := FormatKey(s.Explain(r)[0].Key); len(key) > 1000 {
			t.Errorf("%q: a key of %d characters", c, len(key))
		}
	}
	if n := s.Stats()[0].Table.Keys; n != 10 {
		t.Errorf("%d keys", n)
	}
}
