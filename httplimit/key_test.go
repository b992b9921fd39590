package httplimit

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestOnMissing(t *testing.T) {
	policy := func(v string) string {
		return jsonRules("", jsonRule("r", `["ip:address", "header:k"]`, 2,
			`"on_missing": "`+v+`"`))
	}
	newSite(t, policy("skip")).unlimited("/")
	s := newSite(t, policy("shared"))
	s.granted(2)
	s.granted(2, "K: \xfe") // not the part of a missing value

	var event Event
	s = newSite(t, policy("reject"), WithHooks(Hooks{Refused: func(_ *http.Request,
		e Event,
	) {
		event = e
	}}))
	w := s.get()
	if w.Code != http.StatusBadRequest || s.served > 0 || event.RetryAfter != tb.Never ||
		s.Stats()[0].Rejected != 1 {
		t.Errorf("status %d, served %d, event %+v", w.Code, s.served, event)
	}
	if want := `Rule r needs header:k.`; problem(t, w).Detail != want {
		t.Errorf("%s, want %s", w.Body, want)
	}
	e := s.Explain(request())[0]
	if e.MissingKey != "header:k" || e.Allowed || e.RetryAfter != tb.Never {
		t.Errorf("%+v", e)
	}
	s.granted(2, "K: 1")

	// The answer names the first missing key, also if an extractor finds it when it is called
	// again. It must not be an empty 200.
	asked := 0
	s = newSite(t, jsonRules("", jsonRule("r", `["x", "header:k"]`, 2,
		`"on_missing": "reject"`)), WithExtractor("x", func(*http.Request) string {
		asked++
		return strings.Repeat("1", asked-1)
	}))
	w = s.get()
	if w.Code != http.StatusBadRequest || problem(t, w).Detail != "Rule r needs x." {
		t.Errorf("status %d %s", w.Code, w.Body)
	}
}

// Hooks and Explain have the parts of a key, with the values as they are in the request.
func TestKeyParts(t *testing.T) {
	var events []Event
	hook := func(_ *http.Request, e Event) { events = append(events, e) }
	s := newSite(t, jsonRules("", jsonRule("both", `["ip:address", "header:k"]`, 1, "")),
		WithHooks(Hooks{Granted: hook, Refused: hook}))
	s.granted(1, "K: a b")
	want := []KeyPart{{"ip:address", "192.0.2.1"}, {"header:k", "a b"}}
	if got := s.Explain(request("K: a b"))[0].Key; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(events) != 2 {
		t.Fatalf("%d events, want 2", len(events))
	}
	for _, e := range events {
		if e.Rule != "both" || !slices.Equal(e.Key, want) {
			t.Errorf("%+v, want key %q", e, want)
		}
	}
	if got := FormatKey(want); got != `ip:address=192.0.2.1 header:k="a b"` {
		t.Error(got)
	}
	if got := FormatKey(nil); got != "all requests" {
		t.Error(got)
	}
	if st := s.Stats()[0]; st.Granted != 1 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
}

// A value cannot look like two parts or two lines.
func TestFormatKeyQuotesValues(t *testing.T) {
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

// The requests come over a connection, so net/http reads the names.
func TestHeaderNamesInOddCaseAndRepeated(t *testing.T) {
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
		{"x-api-key: a\r\n", 200},
		{"X-API-KEY: a\r\n", 429},
		{"x-ApI-kEy:a\r\n", 429},
		{"X-Api-Key: a\r\nx-api-key: b\r\n", 400},
		{"X-Api-Key: b\r\nX-Api-Key: a\r\n", 400},
		{"X-Api-Key: b\r\n", 200},
		{"X_Api_Key: a\r\n", 200},
		{"X-Api-Key : c\r\n", 400},
	} {
		if got := send(c.lines); got != c.want {
			t.Errorf("%d: status %d, want %d", i, got, c.want)
		}
	}
}

func TestQueryValueReadsAsNetURLDoes(t *testing.T) {
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

// A text that is not a key is one error, and not two.
func TestErrorsOfKeys(t *testing.T) {
	for _, key := range []string{"", "a\x00", "header:", "query:", "jwt:", "tenant", "ip:address/"} {
		_, err := New(Rules(Rule{Name: "r", Keys: []string{key},
			Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}}))
		if err == nil || strings.Count(err.Error(), "rules[0].limit_keys[0]") != 1 {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// Addresses are shown, and other values are hashed.
func TestFormatMaskedKey(t *testing.T) {
	key := []KeyPart{{Name: "header:x-api-key", Value: "a b"},
		{Name: "ip:address", Value: "192.0.2.1"}, {Name: "query:q"}}
	const want = `header:x-api-key=sha256:c8687a08aa5d ip:address=192.0.2.1 query:q=`
	if got := FormatMaskedKey(key); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if key[0].Value != "a b" {
		t.Error("FormatMaskedKey changed its argument")
	}
}
