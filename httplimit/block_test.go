package httplimit

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A refusal holds each bucket that lacks the cost, and no other, and later ones extend nothing.
func TestBlock(t *testing.T) {
	s := newSite(t, jsonRules("",
		jsonRule("user", `["header:user"]`, 2, `"block": "1h"`),
		jsonRule("tenant", `["header:tenant"]`, 3, `"block": "10m"`),
		jsonRule("all", "[]", 9, "")), steady())
	s.granted(2, "User: a", "Tenant: 1") // and the third blocks a
	for _, after := range []time.Duration{0, time.Minute, 58 * time.Minute} {
		s.now = s.now.Add(after)
		w := s.get("User: a", "Tenant: 1")
		left := sprint(int((time.Hour + time.Second - s.now.Sub(time.Unix(1_800_000_000, 0))).Seconds()))
		wants(t, w, "Retry-After: "+left, "RateLimit-Reset: "+left, `RateLimit: "user";r=0;t=`+left)
	}
	if x := s.Explain(request("User: a", "Tenant: 1")); x[0].Block != time.Hour ||
		x[0].RetryAfter != time.Minute+time.Second || !x[1].Allowed {
		t.Errorf("%+v", x)
	}
	s.granted(2, "User: b", "Tenant: 1")
	s.now = s.now.Add(time.Minute)
	wants(t, s.get("User: a", "Tenant: 2"), "Retry-After: 3601") // it is empty, and not full
	if err := s.Reset("user", "header:user=a"); err != nil {
		t.Fatal(err)
	}
	s.granted(2, "User: a", "Tenant: 2")
}

// A refusal that only estimates have caused is a plain one. Every row is requests to a bucket of 3
// tokens: of those that are admitted, some end with a status, the others go on.
func TestBlockBySettledCosts(t *testing.T) {
	const policy = `{"name": "r", "limit_keys": [], "block": "1h", "mode": "%s", "algorithm_config": {
		"rps": 1, "burst": 3, "cost_source": "response:status", "status_costs": {
			"401": 1, "402": 9, "2xx": 0}}}`
	for _, mode := range []string{"enforce", "shadow"} {
		for _, c := range []struct {
			name    string
			ended   []string
			open    int
			blocked bool
		}{
			{"six first log-ins at once", nil, 3, false},
			{"two failures and a log-in", []string{"401", "401"}, 1, false},
			{"three failures", []string{"401", "401", "401"}, 0, true},
			{"log-ins cost nothing", []string{"200", "200", "200", "401", "401"}, 1, false},
			{"a client that leaves pays the estimate", []string{"401", "", "401"}, 0, true},
			{"a failure above the burst", []string{"402"}, 0, true},
		} {
			s := newSite(t, sprintf(policy, mode))
			admit := func() *Settlement {
				_, settlement, ok := s.Admit(httptest.NewRecorder(), request())
				if !ok || settlement == nil {
					t.Fatalf("%s, %s: not admitted", mode, c.name)
				}
				return settlement
			}
			for _, status := range c.ended {
				settlement := admit()
				if status != "" {
					settlement.ReadStatus(status)
				}
				settlement.Finish()
			}
			for range c.open {
				defer admit().Finish()
			}
			var d Decision
			for range 3 {
				var refusal *Refusal
				if d, _, refusal = s.Take(nil, request()); (refusal != nil) != (mode == "enforce") {
					t.Errorf("%s, %s: %+v", mode, c.name, refusal)
				}
			}
			x := s.Explain(request())[0]
			if (x.RetryAfter > time.Hour) != c.blocked || x.Allowed ||
				mode == "enforce" && d.RetryAfter != x.RetryAfter {
				t.Errorf("%s, %s: %+v, want blocked: %t, after %+v", mode, c.name, x, c.blocked, d)
			}
			s.now = s.now.Add(time.Hour) // then both buckets are empty
			if again := s.Explain(request())[0]; c.blocked && again.RetryAfter != x.RetryAfter {
				t.Errorf("%s, %s: %+v, and %+v after an hour", mode, c.name, x, again)
			}
		}
	}
}

// In a table without room for a second bucket, no cost stands.
func TestNoBlockInAFullTable(t *testing.T) {
	s := newSite(t, login, WithLimiterOptions(tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew)))
	for range 6 {
		s.Take(nil, request()) // goes on
	}
	if x := s.Explain(request())[0]; x.RetryAfter != 500*time.Second {
		t.Errorf("%+v", x)
	}
}

// What is known of the settled costs survives a reload and a restart, and Reset forgives it.
func TestBlockKeepsSettledCosts(t *testing.T) {
	policy := func(block string, burst int) string {
		return sprintf(`{"name": "r", "limit_keys": ["header:k"], %s "algorithm_config": {
			"rps": 1, "burst": %d, "cost_source": "response:status", "status_costs": {
				"401": 1, "2xx": 0}, "tiers": {"by": "header:t", "limits": {"t": {"rps": 1, "burst": %d}}}}}`,
			block, burst, burst)
	}
	const hour = `"block": "1h",`
	for _, c := range []struct {
		name    string
		change  func(s *site) *site
		blocked bool
	}{
		{"a larger burst and back", func(s *site) *site {
			s.reload(policy(hour, 5))
			s.reload(policy(hour, 3))
			return s
		}, true},
		{"a policy that does not block, and back", func(s *site) *site {
			s.reload(policy("", 3))
			s.reload(policy(hour, 3))
			return s
		}, true},
		{"a restart", func(s *site) *site {
			var file bytes.Buffer
			if err := s.Snapshot(&file); err != nil {
				t.Fatal(err)
			}
			next := newSite(t, policy(hour, 3))
			if r, err := next.Restore(&file); err != nil || r.Buckets != 2 || r.Skipped != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			return next
		}, true},
		{"Reset", func(s *site) *site {
			if err := s.Reset("r", "header:k=a"); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				s.Decide(httptest.NewRecorder(), request("K: b")) // another key
				s.Admit(httptest.NewRecorder(), request("K: a"))  // goes on
			}
			return s
		}, false},
	} {
		s := newSite(t, policy(hour, 3))
		for _, tier := range []string{"T: t", "T: none", "T: t"} {
			_, settlement, _ := s.Admit(httptest.NewRecorder(), request("K: a", tier))
			settlement.ReadStatus("401")
			settlement.Finish()
		}
		s = c.change(s)
		d, _, refusal := s.Take(http.Header{}, request("K: a"))
		if refusal == nil || (d.RetryAfter > time.Hour) != c.blocked {
			t.Errorf("%s: %+v, want blocked: %t", c.name, d, c.blocked)
		}
	}
}

// Each step of a block fails once, and is reported: the settlement of the first request, whose cost
// stands, and the refusal of the second one, which stays a refusal.
func TestBlockInAStoreThatFails(t *testing.T) {
	const key, both = "a", "a,standing"
	for _, c := range []struct {
		step, on   string
		after      int // how many such steps do not fail
		retryAfter string
	}{
		{"charge", both, 0, "1000"}, {"take", both, 0, "1000"}, {"charge", both, 1, "1000"},
		{"charge", key, 2, "1000"}, {"take", key, 2, "1000"}, {"take", both, 1, "4600"},
	} {
		failed := 0
		s := newSite(t, `{"name": "r", "limit_keys": ["header:k"], "block": "1h", "algorithm_config": {
			"rps": 0.001, "burst": 1, "cost_source": "response:status", "status_costs": {"2xx": 1}}}`,
			steady(), WithHooks(Hooks{Error: func(*http.Request, Event) { failed++ }}),
			WithStore(referenceStore{t: t, before: at(c.step, func(on string) error {
				if on == c.on {
					c.after--
				}
				if on != c.on || c.after != -1 {
					return nil
				}
				return errDown
			})}))
		s.get("K: a")
		got := s.get("K: a").Header().Get("Retry-After")
		if st := s.Stats()[0]; st.Errors != 1 || failed != 1 || st.Refused != 1 || got != c.retryAfter {
			t.Errorf("%+v: Retry-After: %s, %+v", c, got, st)
		}
	}
}

// login is the policy of docs/how-do-i.md for a log-in.
const login = `{"name": "login", "limit_keys": ["ip:address"], "block": "1h", "algorithm_config": {
	"tokens_per_second": 0.002, "burst": 5, "cost_source": "response:status",
	"status_costs": {"401": 1, "2xx": 0, "3xx": 0}}}`

// The table of docs/policy.md: what attackers, people and an office get of a guarded log-in.
func TestGuardedLogin(t *testing.T) {
	s := newSite(t, login, steady())
	try := func(address, status string) (d Decision, end func()) {
		r := request("POST", "/login")
		r.RemoteAddr = address + ":1024"
		d, settlement, refusal := s.Take(http.Header{}, r)
		if refusal != nil {
			return d, nil
		}
		return d, func() {
			settlement.ReadStatus(status)
			settlement.Finish()
		}
	}
	type visits struct{ served, refused, blocked int }
	count := func(v *visits, d Decision, end func()) {
		switch {
		case end != nil:
			v.served++
			end()
		case d.RetryAfter > time.Hour:
			v.blocked++
		default:
			v.refused++
		}
	}
	var attackers, people, office visits
	for range 20 { // guesses, one a second
		for i := range 1000 {
			d, end := try(sprintf("10.0.%d.%d", i/250, i%250), "401")
			count(&attackers, d, end)
		}
		s.now = s.now.Add(time.Second)
	}
	for i := range 100 {
		for _, status := range []string{"401", "303"} {
			d, end := try(sprintf("192.0.2.%d", i), status)
			count(&people, d, end)
		}
	}
	for group := range 5 {
		waiting := []string{"303", "303", "303", "303", "303", "303"} // at the same moment
		if group < 3 {
			waiting = append(waiting, "401") // one of them mistypes first
		}
		for len(waiting) > 0 {
			var again []string
			var ends []func()
			for _, status := range waiting {
				d, end := try("198.51.100.1", status)
				if end == nil {
					count(&office, d, nil)
					again = append(again, status)
				} else {
					ends = append(ends, end)
				}
			}
			for _, end := range ends {
				count(&office, Decision{}, end)
			}
			waiting = again
			s.now = s.now.Add(5 * time.Second)
		}
	}
	for _, c := range []struct {
		name      string
		got, want visits
	}{
		{"1,000 addresses with 20 guesses each", attackers, visits{served: 5000, blocked: 15000}},
		{"100 people who mistype once", people, visits{served: 200}},
		{"30 people behind one address, 3 of whom mistype", office,
			visits{served: 33, refused: 22}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, c.want)
		}
	}
}
