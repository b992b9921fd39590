package httplimit

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Section 5: the answer.

// details is a body after RFC 9457, and nothing but its fields.
type details struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies"`
}

// problem parses the body, and checks what RFC 9457 says of it.
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

// steady has a jitter of 0 for requests from the address of httptest to "/", up to a base
// of 2000 seconds.
func steady() Option { return WithJitterSalt("2024") }

func TestS5GrantedFieldsOfThePage(t *testing.T) {
	s := newSite(t, `{"name": "per-org-rps", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 100, "burst": 200,
		"cost_source": "header:w"}}`)
	w := s.get("X-Api-Key: org-abc", "W: 112.5679")
	wants(t, w, "RateLimit-Limit: 200", "RateLimit-Remaining: 87", "RateLimit-Reset: 1",
		`RateLimit: "per-org-rps";r=87;t=1`, "Retry-After: ", "X-Fairvisor-Reason: ",
		"Cache-Control: ",
		"RateLimit-Policy: ", "X-RateLimit-Limit: ")
	if len(w.Header()) != 4 {
		t.Errorf("%v", w.Header())
	}
}

func TestS5ResetIsWhenOneMoreWholeTokenIsThere(t *testing.T) {
	for _, c := range []struct{ rps, cost, want string }{
		{"1", "1", "1"}, {"100", "3.5", "1"}, {"1.5", "0.1", "1"},
		{"0.1", "1", "10"}, {"0.1", "0.1", "1"}, {"0.1", "0.75", "8"}, {"0.1", "1.1", "1"},
		{"0.1", "2", "10"},
		{"0.999", "1", "2"}, {"0.3", "1", "4"}, {"0.000000001", "1", "1000000000"},
	} {
		s := newSite(t, oneRule("[]",
			`"rps": `+c.rps+`, "burst": 900, "cost_source": "header:w"`))
		wants(t, s.get("W: "+c.cost), "RateLimit-Reset: "+c.want)
	}
	s := newSite(t, jsonRules(""))
	if err := s.SetPolicy(Rules(Rule{Name: "r", Limit: tb.Limit{Capacity: 2, Tokens: 1,
		Per: 1500 * time.Millisecond}})); err != nil {
		t.Fatal(err)
	}
	wants(t, s.get(), "RateLimit-Reset: 2")
}

func TestS5OneItemForEachRuleThatApplies(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("wide", "[]", 50, ""), jsonRule(`per "org" \ x`,
		`["header:k"]`, 20, ""),
		jsonRule("other", `["header:other"]`, 20, ""), jsonRule("trial", "[]", 1,
			`"mode": "shadow"`)))
	w := s.get("K: 1")
	want := []string{"wide r=49 t=1", `per "org" \ x r=19 t=1`}
	if got := items(t, w, "RateLimit"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	wants(t, w, "RateLimit-Limit: 20", "RateLimit-Remaining: 19")
}

func TestS5NoFieldsIfNoRuleApplies(t *testing.T) {
	newSite(t, jsonRules("", jsonRule("r", `["header:k"]`, 2, "")), WithPolicyField(),
		WithXRateLimit()).unlimited("/")
}

func TestS5SilentGrants(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", "[]", 1, "")), WithSilentGrants(),
		WithPolicyField(), WithXRateLimit(), steady())
	if w := s.get(); w.Code != http.StatusOK || len(w.Header()) > 0 {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	if !s.seen.Allowed || s.seen.Rule != "r" {
		t.Errorf("the handler sees %+v", s.seen)
	}
	wants(t, s.get(), "RateLimit-Limit: 1", "RateLimit-Remaining: 0", "Retry-After: 1",
		`RateLimit: "r";r=0;t=1`, `RateLimit-Policy: "r";q=1;w=1`, "X-RateLimit-Remaining: 0")
}

func TestS5RefusedFieldsOfThePage(t *testing.T) {
	s := newSite(t, `{"name": "per-org-rps", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 100, "burst": 200,
		"fixed_cost": 150}}`, steady())
	s.get("X-Api-Key: org-abc")
	w := s.get("X-Api-Key: org-abc")
	wants(t, w, "Retry-After: 1", "RateLimit-Limit: 200", "RateLimit-Remaining: 0",
		"RateLimit-Reset: 1",
		`RateLimit: "per-org-rps";r=0;t=1`, "X-Fairvisor-Reason: token_bucket_exceeded",
		"Cache-Control: no-store")
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("status %d", w.Code)
	}
}

// The page's 2 is the second that 150 missing tokens take at 100 a second.
func TestS5RetryAfterIsRoundedUp(t *testing.T) {
	for _, c := range []struct{ rps, burst, cost, want string }{
		{"100", "200", "200", "2"}, // 200 tokens
		{"100", "200", "150", "1"}, // 100
		{"100", "200", "151", "2"}, // 102
		{"0.5", "3", "2", "2"},     // 1
		{"0.1", "3", "1.6", "2"},   // 0.2
		{"0.1", "3", "1.505", "1"}, // 0.01
	} {
		s := newSite(t, oneRule("[]", sprintf(`"rps": %s, "burst": %s, "fixed_cost": %s`, c.rps,
			c.burst, c.cost)), steady())
		s.get()
		wants(t, s.get(), "Retry-After: "+c.want, "RateLimit-Reset: "+c.want)
	}
}

func TestS5RefusedItemsAreThoseOfTheRefusingRules(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("wide", "[]", 50, ""), jsonRule("a", "[]", 1, ""),
		sprintf(
			`{"name": "b", "limit_keys": [], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 0.01, "burst": 1}}`)))
	s.get()
	w := s.get()
	retry := w.Header().Get("Retry-After")
	if n, _ := strconv.Atoi(retry); n < 100 || n > 150 {
		t.Errorf("Retry-After: %s", retry)
	}
	// The wait of a alone would bring its clients back to be refused by b.
	want := []string{"a r=0 t=" + retry, "b r=0 t=" + retry}
	if got := items(t, w, "RateLimit"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if p := problem(t, w); !slices.Equal(p.Violated, []string{"a", "b"}) {
		t.Errorf("%+v", p)
	}
}

func TestS5RefusedBody(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "query:n"`))
	s.get("/?n=2")
	w := s.get("/?n=1.5")
	want := details{"https://iana.org/assignments/http-problem-types#quota-exceeded",
		"Quota exceeded", 429,
		"r has too few tokens left for this request, which costs 1.5.", []string{"r"}}
	if p := problem(t, w); sprintf("%q", p) != sprintf("%q", want) {
		t.Errorf("%q\nwant %q", p, want)
	}
	// As much as the burst can fit.
	want.Detail = "r has too few tokens left for this request, which costs 2."
	if p := problem(t, s.get("/?n=2")); p.Detail != want.Detail {
		t.Errorf("%q\nwant %q", p, want)
	}
}

func TestS5NoBodyForHEAD(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", "[]", 1, "")))
	s.get()
	if w := s.get("HEAD"); w.Code != http.StatusTooManyRequests || w.Body.Len() > 0 ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// (cost − tokens)/rate, although no wait helps.
func TestS5CostAboveBurstFollowsTheFormula(t *testing.T) {
	for _, c := range []struct{ rps, before, cost, want string }{
		{"1", "0", "11", "1"}, {"1", "0", "15", "5"}, {"1", "4", "15", "9"}, {"1", "0.5", "10.2",
			"1"},
		{"2", "3", "10.5", "2"}, {"0.1", "0", "10.3", "3"}, {"0.1", "5", "10.1", "51"},
		{"1", "0", "1e300", sprintf("%d", ceilSeconds(math.MaxInt64))},
	} {
		s := newSite(t, oneRule("[]", `"rps": `+c.rps+`, "burst": 10, "cost_source": "header:w"`))
		if c.before != "0" {
			s.get("W: " + c.before)
		}
		w := s.get("W: " + c.cost)
		retry, _ := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
		want, _ := strconv.ParseInt(c.want, 10, 64)
		if retry < want || retry > want+want/2 {
			t.Errorf("%+v: Retry-After: %d", c, retry)
		}
		if p := problem(t, w); !strings.Contains(p.Detail, "r never has more than 10 tokens") {
			t.Errorf("%s", p.Detail)
		}
		items(t, w, "RateLimit") // 1e300 must not break the field either
	}
}

func TestS5ReasonField(t *testing.T) {
	policy := jsonRules("", jsonRule("r", "[]", 1, ""))
	s := newSite(t, policy, WithReasonField("x-why"))
	s.get()
	wants(t, s.get(), "X-Why: token_bucket_exceeded", "X-Fairvisor-Reason: ")
	s = newSite(t, policy, WithReasonField(""))
	s.get()
	if w := s.get(); len(w.Header()) != 7 || w.Header().Get("X-Fairvisor-Reason") != "" {
		t.Errorf("%v", w.Header())
	}
}

func TestS5PolicyField(t *testing.T) {
	for _, c := range []struct {
		rps   string
		burst int
		want  string
	}{
		{"100", 200, "w=2"}, {"100", 201, "w=3"}, {"3", 3, "w=1"}, {"1e9", 1e9, "w=1"}, {"5", 6,
			"w=2"},
		{"0.1", 1, "w=10"}, {"0.3", 1, "w=4"}, {"0.000000001", 999_999, "w=999999000000000"},
		// No structured field can hold more.
		{"0.000000001", 1_000_000, "w=999999999999999"}, {"0.000000001", 1 << 30, "w=999999999999999"},
	} {
		s := newSite(t, oneRule("[]", sprintf(`"rps": %s, "burst": %d`, c.rps, c.burst)),
			WithPolicyField())
		want := sprintf(`"r";q=%d;%s`, c.burst, c.want)
		w := s.get()
		wants(t, w, "RateLimit-Policy: "+want)
		items(t, w, "RateLimit-Policy")
	}
	s := newSite(t, jsonRules("", jsonRule("a", "[]", 1, ""), jsonRule("b", "[]", 7, "")),
		WithPolicyField())
	for range 2 { // granted and refused
		if got := items(t, s.get(), "RateLimit-Policy"); !slices.Equal(got, []string{"a q=1 w=1",
			"b q=7 w=7"}) {
			t.Errorf("%q", got)
		}
	}
}

func TestS5XRateLimit(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 0.1, "burst": 3`), WithXRateLimit(), steady())
	at := func(d time.Duration) string {
		return sprintf("X-RateLimit-Reset: %d",
			s.now.Add(d).Unix())
	}
	wants(t, s.get(), "X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 2", at(10*time.Second))
	s.now = s.now.Add(1500 * time.Millisecond) // full 8.5 s later, at a whole second
	wants(t, s.get(), "X-RateLimit-Remaining: 1", at(18500*time.Millisecond))
	s.get()
	w := s.get()
	wants(t, w, "X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 0", at(28500*time.Millisecond))
	s.now = s.now.Add(time.Minute + 100*time.Millisecond) // full 10 s after a fraction of one
	wants(t, s.get(), sprintf("X-RateLimit-Reset: %d", s.now.Unix()+11))
	// It is not before Retry-After.
	s = newSite(t, oneRule("[]", `"rps": 0.1, "burst": 1`), WithXRateLimit(), WithJitterSalt("1"))
	s.get()
	w = s.get()
	retry, _ := strconv.Atoi(w.Header().Get("Retry-After"))
	if retry == 10 {
		t.Fatal("this salt gives no jitter")
	}
	wants(t, w, at(time.Duration(retry)*time.Second))
}

func TestS5FieldsAreStructured(t *testing.T) {
	// Every printable character may be in a name, and every item is an item.
	name := ""
	for c := ' '; c <= '~'; c++ {
		name += string(c)
	}
	s := newSite(t, jsonRules("", jsonRule("x", "[]", 1, ""), sprintf(`{"name": %q,
		"limit_keys": [], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 0.000000001, "burst": 1}}`, name)), WithPolicyField())
	for range 2 {
		w := s.get()
		for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
			list, err := httpsfv.UnmarshalList(w.Header().Values(field))
			if err != nil || list[1].(httpsfv.Item).Value != name {
				t.Errorf("%s: %v %v", field, err, list)
			}
			// It is written as that library writes it.
			if text, err := httpsfv.Marshal(list); err != nil || text != w.Header().Get(field) {
				t.Errorf("%s: %s, want %s", field, w.Header().Get(field), text)
			}
		}
		if w.Code == http.StatusTooManyRequests && !slices.Contains(problem(t, w).Violated,
			name) {
			t.Errorf("%s", w.Body)
		}
	}
}
