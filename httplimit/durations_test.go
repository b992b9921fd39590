package httplimit

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestExplainHasTheLevel(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("key", `["header:k"]`, 4, `"on_missing": "reject"`),
		sprintf(`{"name": "slow", "limit_keys": ["ip:address"],
			"algorithm_config": {"rps": 0.1, "burst": 3, "fixed_cost": 1.5}}`)))
	s.get("K: 1")
	s.now = s.now.Add(250 * time.Millisecond)
	e := s.Explain(request("K: 1"))
	want := tb.Level{Tokens: 3.25, NextToken: 750 * time.Millisecond, Full: 750 * time.Millisecond}
	if e[0].Level != want {
		t.Errorf("%+v, want %+v", e[0].Level, want)
	}
	want = tb.Level{Tokens: 1.525, NextToken: 4750 * time.Millisecond, Full: 14750 * time.Millisecond}
	if e[1].Level != want {
		t.Errorf("%+v, want %+v", e[1].Level, want)
	}
	if e := s.Explain(request()); e[0].Level != (tb.Level{}) || e[0].MissingKey != "header:k" {
		t.Errorf("%+v", e[0])
	}
	s = newSite(t, slowRule(1, 3), WithStore(referenceStore{t: t, before: at("level", fail)}))
	if e := s.Explain(request("K: 1")); !e[0].Allowed || e[0].Level != (tb.Level{}) {
		t.Errorf("a store that fails: %+v", e)
	}
}

// The decision of a bucket that reports no level is all that is known of it.
func TestFieldsOfABucketWithoutLevel(t *testing.T) {
	granted := tb.Decision{Allowed: true, Remaining: 3}
	refused := tb.Decision{RetryAfter: 7 * time.Second, Remaining: 3}
	never := tb.Decision{RetryAfter: tb.Never, Remaining: 3}
	for _, c := range []struct {
		config string
		answer tb.Decision
		want   string
	}{
		{`"rps": 0.1, "burst": 5`, granted, "RateLimit-Reset: 10"},
		{`"rps": 1, "burst": 5`, granted, "RateLimit-Reset: 1"},
		{`"rps": 1, "burst": 5, "fixed_cost": 5`, refused, "Retry-After: 7"},
		{`"rps": 1, "burst": 5, "fixed_cost": 8`, never, "Retry-After: 5"},
		// Decisions of another limit.
		{`"rps": 1, "burst": 5, "fixed_cost": 8`, refused, "Retry-After: 5"},
		{`"rps": 1, "burst": 5, "fixed_cost": 5`, never, "Retry-After: 2"},
	} {
		s := newSite(t, oneRule("[]", c.config), steady(), WithStore(referenceStore{
			t: t, answers: answers{decision: &c.answer, level: &tb.Level{Full: -1}},
		}))
		wants(t, s.get(), c.want)
	}
	if d := supplyTime(tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: 1 << 33}, 1<<30); d != tb.Never {
		t.Errorf("2³⁰ tokens take %v", d)
	}
}

// refusal returns the Retry-After of a request that is refused with the given base.
func refusal(t *testing.T, base int, r *http.Request, opts ...Option) int {
	t.Helper()
	s := newSite(t, oneRule("[]", sprintf(`"rps": %.9f, "burst": 1`, min(1,
		1/float64(base)+1e-9))), opts...)
	s.send(r)
	w := s.send(r)
	n, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if err != nil {
		t.Fatal(w.Code, w.Header())
	}
	return n
}

// Also clients that must wait for a second do not come back together.
func TestJitterIsWithinHalfOfBaseAndReachesBothEnds(t *testing.T) {
	for _, base := range []int{1, 2, 3, 4, 5, 10} {
		const clients = 200
		seen, most := map[int]int{}, (base+1)/2
		for i := range clients {
			r := request()
			r.RemoteAddr = sprintf("192.0.2.%d:1", i)
			seen[refusal(t, base, r)-base]++
		}
		for offset, n := range seen {
			if offset < 0 || offset > most || n > clients/(most+1)*3/2 {
				t.Errorf("base %d: %d clients with offset %d", base, n, offset)
			}
		}
		if len(seen) != most+1 {
			t.Errorf("base %d: offsets %v", base, seen)
		}
	}
}

func TestJitterDependsOnSaltSubjectAddressAndPath(t *testing.T) {
	const base = 100_000
	user := func(name string, v any) *http.Request {
		r := request("/p")
		return r.WithContext(ContextWithClaims(r.Context(), map[string]any{name: v}))
	}
	from := func(address string) *http.Request {
		r := request("/p")
		r.RemoteAddr = address
		return r
	}
	all := map[int]string{}
	for _, c := range []struct {
		name string
		r    *http.Request
		opts []Option
	}{
		{"path", request("/p"), nil},
		{"other path", request("/q"), nil},
		{"secret", request("/p"), []Option{WithSharedSecret("s")}},
		{"sub", user("sub", "7"), nil},
		{"other sub", user("sub", "8"), nil},
		{"address", from("[2001:db8::1]:1"), nil},
		{"other address", from("[2001:db8:0:1::1]:1"), nil},
	} {
		got := refusal(t, base, c.r, c.opts...)
		if other, ok := all[got]; ok {
			t.Errorf("%s and %s have the same", c.name, other)
		}
		all[got] = c.name
	}
	same := func(what string, a, b *http.Request) {
		if x, y := refusal(t, base, a), refusal(t, base, b); x != y {
			t.Errorf("%s: %d and %d", what, x, y)
		}
	}
	same("query", request("/p?a"), request("/p?b"))
	same("port and network", from("[2001:db8::1]:1"), from("[2001:db8::ffff]:2"))
	same("uid", user("sub", "7"), user("uid", "7"))
	all3 := map[string]any{"sub": "7", "user_id": "8", "uid": "9"}
	both := map[string]any{"user_id": "7", "uid": "9", "sub": ""}
	for _, claims := range []map[string]any{all3, both} {
		r := request("/p")
		same("the first of several", user("sub", "7"),
			r.WithContext(ContextWithClaims(r.Context(), claims)))
	}
	same("header", request("/p", "X: 1"), request("/p", "X: 2"))
}

// The offset is the same in every process and version: these are its values.
func TestJitterIsStable(t *testing.T) {
	for _, c := range []struct {
		path string
		want int
	}{{"/", 1029}, {"/a", 1398}, {"/b", 1074}} {
		if got := refusal(t, 1000, request(c.path), WithSharedSecret("salt")); got != c.want {
			t.Errorf("%s: %d, want %d", c.path, got, c.want)
		}
	}
}

// A client that spreads the tokens left over the effective window keeps to the rate.
func TestPaceOfTheFieldIsThatOfThePolicy(t *testing.T) {
	for _, c := range []struct{ rps, burst, want string }{
		{"0.5", "1800", "r=1799 t=3598"},
		{"100", "200", "r=199 t=2"},
		{"1e9", "1000000000", "r=999999999 t=1"},
		{"0.000000001", "1073741824", "r=1073741823 t=999999999068677"},
		{"0.1", "2", "r=1 t=10"},
		{"0.1", "1", "r=0 t=10"},
	} {
		s := newSite(t, oneRule("[]", `"rps": `+c.rps+`, "burst": `+c.burst),
			WithFields(Fields{Policy: true}))
		w := s.get()
		if got := items(t, w, "RateLimit"); got[0] != "r "+c.want {
			t.Errorf("%s/s and %s: %s, want %s", c.rps, c.burst, got, c.want)
		}
		for range 300 {
			s.now = s.now.Add(37 * time.Millisecond)
			w := s.get()
			var r, t1, q, window int64
			fmt.Sscanf(items(t, w, "RateLimit")[0], "r r=%d t=%d", &r, &t1)
			fmt.Sscanf(items(t, w, "RateLimit-Policy")[0], "r q=%d w=%d", &q, &window)
			if q == 0 || t1 == 0 || float64(r)*float64(window) > float64(t1)*float64(q)*(1+1e-9) {
				t.Errorf("%s/s and %s: r=%d t=%d is faster than q=%d w=%d", c.rps, c.burst, r, t1, q,
					window)
			}
		}
	}
}

// The quota of a rule that counts bytes has their unit.
func TestPolicyOfBytes(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""), WithFields(Fields{Policy: true}))
	wants(t, s.get(), `RateLimit-Policy: "r";q=100;w=100;qu="content-bytes"`)
}
