package httplimit

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestHostileHeaderValuesOf1MiB(t *testing.T) {
	s := newSite(t, jsonRules(`"jwt": "unverified"`, `{"name": "r",
		"limit_keys": ["header:k", "jwt:a", "query:q", "ip:address"],
		"on_missing": "shared", "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 2, "cost_source": "header:w", "default_cost": 2}}`),
		WithClientAddress(ClientAddress{Trusted: prefixes(t, "192.0.2.0/24")}))
	for _, c := range []string{"x", ",", ".", "%", "9", " ", "\xff", "[", ":", "10.0.0.1,"} {
		v := strings.Repeat(c, 1<<20/len(c))
		r := request()
		r.URL.RawQuery = "q=" + v
		r.Header = http.Header{"K": {v}, "W": {v}, "X-Forwarded-For": {v},
			"Authorization": {"Bearer " + v}}
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

func TestHostileForwardingEntries(t *testing.T) {
	l := mustNew(t, jsonRules(""), WithClientAddress(ClientAddress{Trusted: prefixes(t,
		"10.0.0.0/8")}))
	client := strings.Repeat("1.1.1.1, ", 10_000) + "198.51.100.1"
	hops := "198.51.100.1" + strings.Repeat(", 10.0.0.2", 10_000)
	lines := make([]string, 10_000)
	for i := range lines {
		lines[i] = "10.0.0.3"
	}
	lines[0] = "198.51.100.1"
	for name, r := range map[string]*http.Request{
		"entries": from("10.0.0.1:1", client), "hops": from("10.0.0.1:1", hops),
		"lines": from("10.0.0.1:1", lines...),
	} {
		if got := l.ClientAddress(r).String(); got != "198.51.100.1" {
			t.Errorf("%s: %s", name, got)
		}
		if n := testing.AllocsPerRun(10, func() { l.ClientAddress(r) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestHostileInvalidUTF8(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:k"]`, 1, "")))
	s.granted(1, "K: \xff\xfe")
	s.granted(1, "K: \xff")
	s.granted(1, "K: \ufffd")
	if got := FormatKey(s.Explain(request("K: \xff"))[0].Key); got != `header:k="\xff"` {
		t.Error(got)
	}
}

// What a log gets cannot be taken for two keys, or for another line.
func TestHostileKeysAreQuoted(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["query:a", "query:b"]`, 1,
		`"on_missing": "shared"`)))
	for query, want := range map[string]string{
		"a=1&b=2": "query:a=1 query:b=2", "a=1%20query:b=3": `query:a="1 query:b=3" query:b=`,
		"a=%0Ax": `query:a="\nx" query:b=`, "a=%22": `query:a="\"" query:b=`,
		"a=sha256:00&b=": "query:a=sha256:00 query:b=",
		"a=" + strings.Repeat("x",
			129): "query:a=sha256:39bc5944747a41d90c20a2a5c3fafd5d5fb7b2ca1ec58b4dc9ed94b2b1b4a8f9 query:b=",
	} {
		if got := FormatKey(s.Explain(request("/?" + query))[0].Key); got != want && len(query) < 100 ||
			len(query) > 100 && !strings.HasPrefix(got, "query:a=sha256:") {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// Over a connection, where net/http reads the names.
func TestHostileHeaderNamesInOddCaseAndDuplicates(t *testing.T) {
	l := newSite(t, jsonRules("", jsonRule("r", `["header:x-api-key"]`, 1, "")))
	srv := httptest.NewServer(l.Middleware(http.HandlerFunc(nothing)))
	defer srv.Close()
	send := func(lines string) int {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for i, c := range []struct {
		lines string
		want  int
	}{
		{"x-api-key: a\r\n", 200}, {"X-API-KEY: a\r\n", 429}, {"x-ApI-kEy:a\r\n", 429},
		{"X-Api-Key: a\r\nX-Api-Key: b\r\n", 429}, {"X-Api-Key: b\r\nX-Api-Key: a\r\n", 200},
		{"X_Api_Key: a\r\n", 200}, {"X-Api-Key : c\r\n", 400},
	} {
		if got := send(c.lines); got != c.want {
			t.Errorf("%d: status %d, want %d", i, got, c.want)
		}
	}
}

func TestHostileQueryReadsAsNetURLDoes(t *testing.T) {
	for _, query := range []string{
		"", "&", "=", "&&a", "a", "a=", "=a", "a=1&a=2", "b=1&a=2", "a=%31", "%61=1", "a=%zz&a=1",
		"a=%", "a;b=1",
		"a=1;2", "a=1;2&a=3", "a+=1&a=2", "+a=1", "a=+", "a==1", "a%00=1", "A=1", "a=\xff",
		"a=%ff&a=%00",
		strings.Repeat("a%", 1000), strings.Repeat("b&", 1000) + "a=1", "aa=1&aaa=2", "%61%61=1",
		"%2561=1&a=%2561",
	} {
		for _, name := range []string{"a", "a ", "aa", "b", "A"} {
			values, _ := url.ParseQuery(query)
			v, n := queryValue(query, name)
			if v != values.Get(name) || n != min(2, len(values[name])) {
				t.Errorf("%.20q %q: %q %d, want %q", query, name, v, n, values[name])
			}
		}
	}
}

func TestHooksThatAreNilCostNothing(t *testing.T) {
	l := mustNew(t, sprintf(twoRules, "1e9", "1073741824"))
	r := request("X-Api-Key: 0123456789abcdef0123456789abcdef")
	decide := func() {
		c := l.begin(r)
		if c.decide() != granted {
			t.Fatal("refused")
		}
		c.end()
	}
	decide()
	if n := testing.AllocsPerRun(100, decide); n > 0 && !raceEnabled {
		t.Errorf("the decision takes %v allocations", n)
	}
}

func TestAllocationsAreAtMost10(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	for name, l := range map[string]*Limiter{
		"granted": mustNew(t, sprintf(twoRules, "1e9", "1073741824")),
		"refused": mustNew(t, sprintf(twoRules, "0.000001", "1")),
	} {
		h := l.Middleware(http.HandlerFunc(nothing))
		r := request("X-Api-Key: 0123456789abcdef0123456789abcdef")
		w := &responder{}
		n := testing.AllocsPerRun(100, func() {
			w.header = make(http.Header)
			h.ServeHTTP(w, r)
		})
		if n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A panic of the program's own code is not caught. It charges nothing, and leaves nothing
// behind for the requests that come next.
func TestPanicsOfTheProgram(t *testing.T) {
	for _, where := range []string{"extractor", "claims", "limiter", "granted", "refused", "shadow"} {
		boom := func(here string, r *http.Request) {
			if here == where && r.Header.Get("Boom") != "" {
				panic(where)
			}
		}
		s := newSite(t, jsonRules("", jsonRule("cas", `["x", "jwt:y"]`, 5, `"on_missing": "shared"`),
			jsonRule("other", "[]", 4, ""), jsonRule("trial", "[]", 5, `"mode": "shadow"`)),
			WithExtractor("x", func(r *http.Request) string { boom("extractor", r); return "1" }),
			WithClaims(func(r *http.Request) map[string]any { boom("claims", r); return nil }),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				if r.Name != "other" {
					return nativeLimiter(r, time.Unix(1_800_000_000, 0))
				}
				return &otherLimiter{rule: r, asked: new([]string), panics: where == "limiter"}, nil
			}),
			WithHooks(Hooks{
				Granted: func(r *http.Request, _ Event) { boom("granted", r) },
				Refused: func(r *http.Request, _ Event) { boom("refused", r) },
				Shadow:  func(r *http.Request, _ Event) { boom("shadow", r) },
			}))
		try := func() (caught any) {
			defer func() { caught = recover() }()
			s.get("Boom: 1")
			return nil
		}
		used := 0
		if where == "refused" {
			s.granted(4)
			used = 4
		}
		if caught := try(); sprint(caught) != where {
			t.Fatalf("%s: panic %v", where, caught)
		}
		if where == "granted" || where == "shadow" { // told after the request was charged
			used = 1
		}
		if e := s.Explain(request())[0]; e.Remaining != 5-used-1 {
			t.Errorf("%s: %+v", where, e)
		}
		if where != "limiter" {
			s.granted(4 - used)
		}
	}
}

// What lies in the pool refers neither to a request nor to a limiter of an old policy.
func TestCallsThatEndedKeepNothing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("a", `["header:k"]`, 5, ""),
		jsonRule("b", `["ip:address"]`, 5, ""), jsonRule("t", "[]", 5, `"mode": "shadow"`)))
	c := s.begin(request("K: 1"))
	if c.decide() != granted || len(c.entries) != 3 || len(c.charges) != 2 {
		t.Fatalf("%+v", c)
	}
	c.end()
	if c.r != nil || c.policy != nil || c.claims != nil || c.address.IsValid() {
		t.Errorf("%+v", c)
	}
	for _, e := range c.entries[:cap(c.entries)] {
		if e != (entry{}) {
			t.Errorf("%+v", e)
		}
	}
	for _, charge := range c.charges[:cap(c.charges)] {
		if charge != nil {
			t.Errorf("%+v", charge)
		}
	}
}

// The pool must not keep what one request had for the next.
func TestRequestsDoNotSeeEachOther(t *testing.T) {
	s := newSite(t, `{"jwt": "unverified", `+byOrg+`}`)
	s.granted(1, "Authorization: "+token(`{"org": "a", "sub": "x"}`))
	s.unlimited("/")
	s.granted(1, "Authorization: "+token(`{"org": "b"}`))
}

func TestOptionsOfTheCore(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:k"]`, 1, "")),
		WithLimiterOptions(tb.WithMaxKeys(2)), WithLimiterOptions(tb.WithOverflow(tb.RefuseNew)))
	s.granted(1, "K: 1")
	s.granted(1, "K: 2")
	s.granted(0, "K: 3")
	if st := s.Stats()[0]; st.Table.Keys != 2 || st.Table.RefusedNew == 0 {
		t.Errorf("%+v", st)
	}
}
