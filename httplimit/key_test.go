package httplimit

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestOnMissing(t *testing.T) {
	policy := func(v string) string {
		return jsonRules("", jsonRule("r", `["ip:address", "header:k"]`, 2, `"on_missing": "`+v+`"`))
	}
	newSite(t, policy("skip")).unlimited("/")
	s := newSite(t, policy("shared"))
	s.granted(2)
	s.granted(2, "K: \xfe") // not the part of a missing value

	var event Event
	s = newSite(t, policy("reject"),
		WithHooks(Hooks{Refused: func(_ *http.Request, e Event) { event = e }}))
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
	s := newSite(t, jsonRule("r", `["query:a", "query:b"]`, 1, `"on_missing": "shared"`))
	sum := "0ec9eb33e74510bcdd1f2ea55206e82f21649c5c2becbf2b433eb475b34c01bd"
	for query, want := range map[string]string{
		"a=1&b=2": "query:a=1 query:b=2", "a=1%20query:b=3": `query:a="1 query:b=3" query:b=`,
		"a=%0Ax": `query:a="\nx" query:b=`, "a=~!": "query:a=~! query:b=",
		"a=%22":                         `query:a="\"" query:b=`,
		"a=1;2&b=3":                     "query:a= query:b=3", // as net/url reads it
		"a=sha256:00&b=":                "query:a=sha256:00 query:b=",
		"a=" + strings.Repeat("x", 129): "query:a=sha256:" + sum + " query:b=",
	} {
		key := s.Explain(request("/?" + query))[0].Key
		if got := FormatKey(key); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if got, ok := ParseKey(want); !ok || !slices.Equal(got, key) {
			t.Errorf("%s is %q, %v", want, got, ok)
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

func TestLongKeysAreHashed(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:a"]`, 1, "")))
	long := strings.Repeat("x", 129)
	for _, v := range []string{long[:128], long, long + "y", strings.Repeat("x", 1<<20)} {
		s.granted(1, "A: "+v)
	}
	if part := s.Explain(request("A: " + long[:128]))[0].Key[0]; part.Value != long[:128] {
		t.Errorf("Explain has the key %q", part.Value)
	}
	sum := sha256.Sum256([]byte(long)) // may be sent too, and is another value
	s.granted(1, "A: "+string(sum[:]))
	for bytes, want := range map[int]int{63: 66, 128: 132, 129: 35, 1 << 20: 35} {
		if got := len(bucketKey(t, "A: "+strings.Repeat("x", bytes))); got != want {
			t.Errorf("a value of %d bytes: the key has %d bytes, want %d", bytes, got, want)
		}
	}
}

func bucketKey(t *testing.T, field string, opts ...Option) string {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:a", "header:b"]`, 1, "")), opts...)
	c := s.begin(request(field, "B: b"))
	defer c.end()
	c.findRules()
	return strings.Clone(c.entries[0].key)
}

// An operator can compute the key in a store from the request, also a long one.
func TestKeysInAStoreAreText(t *testing.T) {
	long := strings.Repeat("x", 128)
	for value, want := range map[string]string{
		"alice":    "alice,b",
		"a,b {c}":  "a%2Cb%20%7Bc%7D,b",
		long:       long + ",b",
		long + "y": fmt.Sprintf("sha256(%x),b", sha256.Sum256([]byte(long+"y"))),
	} {
		if got := bucketKey(t, "A: "+value, WithStore(referenceStore{t: t})); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

// WithHeader is asked for the fields of keys, matches, tiers, costs, claims and trusted proxies, by
// their canonical names. Request.Header is not. Blanks that HTTP/2 leaves at the ends are dropped.
func TestHeaderComesFromWithHeader(t *testing.T) {
	fields := http.Header{
		"X-Key": {" k\t"}, "X-Plan": {"gold "}, "X-Tier": {" big"}, "X-Cost": {"\t3 "},
		"X-Forwarded-For": {"198.51.100.7"}, "Authorization": {token(`{"sub": "s"}`)},
	}
	var events []Event
	s := newSite(t, jsonRules(`"jwt": "unverified"`, `{"name": "r",
		"limit_keys": ["header:x-key", "ip:address", "jwt:sub"], "match": {"header:x-plan": "gold"},
		"algorithm_config": {"rps": 1, "burst": 10, "cost_source": "header:x-cost",
		"tiers": {"by": "header:x-tier", "limits": {"big": {"rps": 1, "burst": 20}}}}}`),
		WithClientAddress(ClientAddress{Trusted: []netip.Prefix{netip.MustParsePrefix("::/0")}}),
		WithHeader(func(_ *http.Request, name string) []string { return fields[name] }),
		WithHooks(Hooks{Granted: func(_ *http.Request, e Event) { events = append(events, e) }}))
	r := request("X-Key: other", "X-Plan: other", "X-Cost: 9", "X-Tier: other")
	r.RemoteAddr = "[2001:db8::1]:443"
	s.send(r)
	want := []KeyPart{{"header:x-key", "k"}, {"ip:address", "198.51.100.7"}, {"jwt:sub", "s"}}
	if len(events) != 1 || events[0].Remaining != 17 || !slices.Equal(events[0].Key, want) {
		t.Errorf("%+v", events)
	}
	if a := s.ClientAddress(r); a != netip.MustParseAddr("198.51.100.7") {
		t.Errorf("the client is %v", a)
	}
	fields["X-Key"] = []string{"k", "k"}
	if w := s.send(r); w.Code != http.StatusBadRequest {
		t.Errorf("a repeated field: status %d, want 400", w.Code)
	}
}
