package httplimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-181794aa/ratelimit/tb"
)

var (
	sprint  = fmt.Sprint
	sprintf = fmt.Sprintf
)

func mustParse(t testing.TB, policy string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustNew(t testing.TB, policy string, opts ...Option) *Limiter {
	t.Helper()
	l, err := New(mustParse(t, policy), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func nothing(http.ResponseWriter, *http.Request) {}

// site is a server with a limiter whose clock stands still until it is moved.
type site struct {
	*Limiter
	t       *testing.T
	now     time.Time
	handler http.Handler
	served  int
	seen    Decision // of the last request that was served
}

func newSite(t *testing.T, policy string, opts ...Option) *site {
	t.Helper()
	s := &site{t: t, now: time.Unix(1_800_000_000, 0)}
	clock := WithLimiterOptions(tb.WithClock(func() time.Time { return s.now }))
	s.Limiter = mustNew(t, policy, append([]Option{clock, WithContext()}, opts...)...)
	s.handler = s.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.served++
		s.seen, _ = FromContext(r.Context())
	}))
	return s
}

// request returns a request with the given header fields, as in "X-Api-Key: k". Lines that
// start with a slash are the target, and lines without a colon are the method.
func request(lines ...string) *http.Request {
	method, target, query := http.MethodGet, "/", ""
	header := http.Header{}
	for _, line := range lines {
		name, value, isField := strings.Cut(line, ": ")
		switch {
		case isField:
			header.Add(name, value)
		case line[0] == '/':
			target, query, _ = strings.Cut(line, "?") // of which HTTP/2 may have blanks
		default:
			method = line
		}
	}
	r := httptest.NewRequest(method, target, nil)
	r.Header, r.URL.RawQuery = header, query
	return r
}

func by(address string, lines ...string) *http.Request {
	r := request(lines...)
	r.RemoteAddr = "[" + address + "]:1"
	return r
}

func (s *site) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func (s *site) get(lines ...string) *httptest.ResponseRecorder { return s.send(request(lines...)) }

// granted sends the request n+1 times, and wants n requests granted and the last one refused.
func (s *site) granted(n int, lines ...string) {
	s.t.Helper()
	for i := range n {
		if w := s.get(lines...); w.Code != http.StatusOK {
			s.t.Fatalf("request %d of %d %v: status %d %s", i+1, n, lines, w.Code, w.Body)
		}
	}
	if w := s.get(lines...); w.Code != http.StatusTooManyRequests {
		s.t.Fatalf("request %d %v: status %d, want 429", n+1, lines, w.Code)
	}
}

func (s *site) unlimited(lines ...string) {
	s.t.Helper()
	if got := s.Explain(request(lines...)); len(got) > 0 {
		s.t.Fatalf("%v is limited by %+v", lines, got)
	}
	if w := s.get(lines...); w.Code != http.StatusOK || len(w.Header()) > 0 {
		s.t.Fatalf("%v: status %d, header %v", lines, w.Code, w.Header())
	}
}

func (s *site) reload(policy string) {
	s.t.Helper()
	if err := s.SetPolicy(mustParse(s.t, policy)); err != nil {
		s.t.Error(err)
	}
}

// left returns the tokens in the bucket of the first rule that applies to a request.
func (s *site) left(lines ...string) float64 {
	s.t.Helper()
	e := s.Explain(request(lines...))
	if len(e) == 0 {
		s.t.Fatal("no rule applies")
	}
	return e[0].Level.Tokens
}

func (s *site) answer(f http.HandlerFunc) { s.handler = s.Middleware(f) }

// applying returns the names of the rules that apply. Shadow rules are in brackets, and a rule that
// lacks its key, or has it more than once, ends with an exclamation mark.
func (s *site) applying(lines ...string) string { return s.applied(request(lines...)) }

func (s *site) applied(r *http.Request) string {
	var names []string
	for _, e := range s.Explain(r) {
		if e.AmbiguousKey+e.MissingKey != "" {
			e.Rule += "!"
		}
		if e.Shadow {
			e.Rule = "(" + e.Rule + ")"
		}
		names = append(names, e.Rule)
	}
	return strings.Join(names, " ")
}

// wants checks fields, as in "Retry-After: 2". "Retry-After: " wants the field to be absent.
func wants(t *testing.T, w *httptest.ResponseRecorder, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, want, _ := strings.Cut(line, ": ")
		if got := strings.Join(w.Header().Values(name), " | "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// items parses a structured field, and writes each item as name key=value key=value.
func items(t *testing.T, w *httptest.ResponseRecorder, name string) (all []string) {
	t.Helper()
	list, err := httpsfv.UnmarshalList(w.Header().Values(name))
	if err != nil {
		t.Fatalf("%s %q: %v", name, w.Header().Values(name), err)
	}
	for _, m := range list {
		item := m.(httpsfv.Item)
		text := item.Value.(string)
		for _, k := range item.Params.Names() {
			v, _ := item.Params.Get(k)
			text += sprintf(" %s=%d", k, v.(int64))
		}
		all = append(all, text)
	}
	return all
}

// oneRule is a policy of a rule with these keys and fields of algorithm_config.
func oneRule(keys, config string) string {
	return sprintf(`{"name": "r", "limit_keys": %s, "algorithm": "token_bucket",
		"algorithm_config": {%s}}`, keys, config)
}

// jsonRule returns a rule of one token a second with this burst, and more fields.
func jsonRule(name, keys string, burst int, more string) string {
	if more != "" {
		more = ", " + more
	}
	return sprintf(`{"name": %q, "limit_keys": %s, "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": %d}%s}`, name, keys, burst, more)
}

func slowRule(rate float64, burst int) string {
	return oneRule(`["header:k"]`, sprintf(`"tokens_per_second": %v, "burst": %d`, rate, burst))
}

func jsonRules(more string, rules ...string) string {
	if more != "" {
		more += ","
	}
	return sprintf(`{%s"rules": [%s]}`, more, strings.Join(rules, ","))
}

// details has the fields of a body after RFC 9457.
type details struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies"`
	// Retryable is false if no wait helps, and nil otherwise.
	Retryable any `json:"retryable"`
}

// problem parses a body after RFC 9457 and checks its required fields.
func problem(t *testing.T, w *httptest.ResponseRecorder) (p details) {
	t.Helper()
	wants(t, w, "Content-Type: application/problem+json")
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if p.Status != w.Code || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Errorf("%+v", p)
	}
	return p
}

// steady returns a secret with a jitter of 0 for requests from the address of httptest to "/",
// up to a base of 2000 seconds.
func steady() Option { return WithSharedSecret("2024") }
