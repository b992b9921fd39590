package redis

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

var _ httplimit.Store = (*Store)(nil)

// wholePolicy is a policy with two rules that have all that a rule can have, and grant almost
// nothing after their bursts. The burst of the tenant is n.
func wholePolicy(n int) string {
	return fmt.Sprintf(`{"rules": [
		{"name": "user", "limit_keys": ["header:user"], "algorithm_config": {
			"rps": 0.0005, "burst": 2, "cost_source": "header:weight", "max_cost": 9,
			"tiers": {"by": "header:plan", "limits": {"gold": {"rps": 0.0005, "burst": 8}}}}},
		{"name": "tenant", "limit_keys": ["header:tenant"], "on_limit": "delay", "max_delay": "2h",
			"algorithm_config": {"rps": 0.0005, "burst": %d, "cost_source": "response:header:used",
				"default_cost": 2, "max_cost": 5}},
		{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {
			"rps": 0.0005, "burst": 1}}]}`, n)
}

type shop struct {
	*httplimit.Limiter
	t       *testing.T
	handler http.Handler
}

func newShop(t *testing.T, c rueidis.Client, policy string, opts ...httplimit.Option) *shop {
	t.Helper()
	store, err := NewStore(c, WithPrefix("shop:"), WithTimeout(patient), WithMaxDenial(patient),
		WithLease(time.Second)) // for rates of two a second and more
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t}
	s.Limiter, err = httplimit.New(parsed(t, policy), append(opts, httplimit.WithStore(store),
		httplimit.WithTimeout(patient))...)
	if err != nil {
		t.Fatal(err)
	}
	s.handler = s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Used", r.Header.Get("Used"))
	}))
	return s
}

func parsed(t *testing.T, policy string) *httplimit.Policy {
	t.Helper()
	p, err := httplimit.ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func order(weight, used, plan string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header = http.Header{
		"User": {"u"}, "Tenant": {"t"}, "Weight": {weight}, "Used": {used}, "Plan": {plan},
	}
	return r
}

func (s *shop) send(r *http.Request) int {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code
}

// commands returns how many commands the store has sent, of which each rule knows.
func (s *shop) commands() (n uint64) {
	for i, st := range s.Stats() {
		of := st.Limiter.(*Limiter).Stats().Commands
		if n = max(n, of); i > 0 && n != of {
			s.t.Errorf("rule %d has %d commands, and another one %d", i, of, n)
		}
	}
	return n
}

// levels wants these tokens in the buckets of a request, to a quarter.
func (s *shop) levels(r *http.Request, want string) {
	s.t.Helper()
	got := ""
	for _, e := range s.Explain(r) {
		got += fmt.Sprintf(" %g", math.Round(4*e.Level.Tokens)/4+0) // and no -0
	}
	if got != want {
		s.t.Errorf("the buckets have%s, want%s", got, want)
	}
}

// A request takes one command, whatever its rules, and takes from all of them or from none. A
// shadow rule is a command of its own, and so is a settlement. All processes see the same buckets.
func TestAPolicyInRedis(t *testing.T) {
	c := dial(t, redistest.Start(t))
	shops := []*shop{newShop(t, c, wholePolicy(7)), newShop(t, c, wholePolicy(7))}
	for _, s := range shops {
		if n := s.commands(); n != 0 {
			t.Errorf("%d commands before the first request", n)
		}
		s.Explain(order("1", "", "")) // learns the clock
	}
	for i, tt := range []struct {
		weight, used, plan string
		status             int
		commands           uint64
		after              string
	}{
		{"0.5", "0.25", "", 200, 3, " 1.5 6.75 0"},
		{"2", "1", "", 429, 1, " 1.5 6.75 0"},         // the user has too few: the tenant is not charged
		{"1.25", "1", "gold", 200, 2, " 0.25 5.75 0"}, // the tokens stay in the new tier
		{"2", "1", "", 429, 1, " 0.25 5.75 0"},
		// only the shadow rule is known: gold has come between
		{"0.25", "5", "gold", 200, 2, " 0 0.75 0"},
	} {
		s := shops[i%2]
		before := s.commands()
		if status := s.send(order(tt.weight, tt.used, tt.plan)); status != tt.status {
			t.Errorf("request %d: status %d, want %d", i, status, tt.status)
		}
		if n := s.commands() - before; n != tt.commands {
			t.Errorf("request %d: %d commands, want %d", i, n, tt.commands)
		}
		for _, s := range shops {
			s.levels(order("1", "", tt.plan), tt.after)
		}
	}
	for _, s := range shops {
		if err := s.SetPolicy(parsed(t, wholePolicy(5))); err != nil {
			t.Fatal(err)
		}
		s.levels(order("1", "", ""), " 0 0.75 0")
	}
	if st := shops[1].Stats(); st[0].Refused != 2 || st[1].Refused != 0 {
		t.Errorf("%+v", st)
	}
	if st := shops[0].Stats(); st[0].Granted != 3 || st[1].Settled != 3 || st[2].ShadowGranted != 1 {
		t.Errorf("%+v", st)
	}
}

// A request that waits gives the tokens of all its rules back if its client leaves, or if it may
// not wait any longer.
func TestDelayInRedis(t *testing.T) {
	s := newShop(t, dial(t, redistest.Start(t)), wholePolicy(2))
	r := order("1", "", "gold")
	if status := s.send(r); status != http.StatusOK {
		t.Fatal(status)
	}
	s.levels(r, " 7 0 0")
	for _, want := range []int{499, http.StatusTooManyRequests} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan int)
		go func() { done <- s.send(r.WithContext(ctx)) }()
		for s.Stats()[1].Waiting == 0 {
			runtime.Gosched()
		}
		s.levels(r, " 6 -2 0")
		if want == 499 {
			cancel()
		} else {
			s.StopWaiting(time.Now())
		}
		if status := <-done; status != want {
			t.Errorf("status %d, want %d", status, want)
		}
		cancel()
		s.levels(r, " 7 0 0")
	}
	if st := s.Stats()[1]; st.HungUp != 1 || st.Granted != 1 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
}

// If Redis does not decide, httplimit does: the calls return the error.
func TestAPolicyWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	c := dial(t, server)
	signal(t, server, syscall.SIGKILL)
	var events []error
	failed := func(_ *http.Request, e httplimit.Event) { events = append(events, e.Err) }
	s := newShop(t, c, wholePolicy(1), httplimit.WithHooks(httplimit.Hooks{Error: failed}))
	r := order("1", "", "")
	if status := s.send(r); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if len(events) != 2 { // of the enforced rules and of the shadow rule
		t.Fatalf("%v", events)
	}
	for _, err := range events {
		wantCause(t, err, CauseUnreachable)
	}
	for _, e := range s.Explain(r) {
		if e.Level != (tb.Level{}) || e.Allowed {
			t.Errorf("%+v", e)
		}
	}
	l := newLimiter(t, c, slow, WithPolicy(Fail))
	if _, err := l.Reserve(t.Context(), "k", 1); err == nil {
		t.Error("a reservation without Redis")
	}
	if err := l.Wait(t.Context(), "k", 1); err == nil {
		t.Error("no wait without Redis")
	}
	if st := l.Stats(); st.PolicyRefused+st.PolicyGranted != 0 || st.Policy.String() != "fail" {
		t.Errorf("%+v", st)
	}
}

func TestStoresWithErrors(t *testing.T) {
	c := dial(t, redistest.Start(t))
	if _, err := NewStore(c, WithPrefix("{")); err == nil {
		t.Error("a prefix with a brace")
	}
	s, err := NewStore(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range [][]tb.Limit{{{}}, {slow, {}}} {
		if _, err := s.Limiters("r", limits); err == nil {
			t.Errorf("limiters of %v", limits)
		}
	}
}

// An operator finds the buckets of a client by what the client sends, and deletes them.
func TestBucketsOfAPolicyAreFoundByText(t *testing.T) {
	c := dial(t, redistest.Start(t))
	s := newShop(t, c, `{"rules": [
		{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 0.01, "burst": 9}},
		{"name": "net", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 0.01, "burst": 9}},
		{"name": "key", "limit_keys": ["ip:address", "header:key"], "on_missing": "shared",
			"algorithm_config": {"rps": 0.01, "burst": 9}}]}`)
	const network, key = "shop:net:ip%3Aaddress:", "shop:key:ip%3Aaddress,header%3Akey:"
	for _, client := range []struct {
		address, value string
		names          []string
	}{
		{"192.0.2.1:1", "alice", []string{network + "{192.0.2.1}", key + "{192.0.2.1,alice}"}},
		{"[2001:db8::9]:1", "a, {b}", []string{
			network + "{2001:db8::/64}", key + "{2001:db8::/64,a%2C%20%7Bb%7D}",
		}},
		{"@", "", []string{network + "{unknown}", key + "{unknown,}"}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = client.address
		r.Header.Set("Key", client.value)
		if code := s.send(r); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
		for _, name := range append(client.names, "shop:all::{}") {
			if n := number(t, c, "DEL", name); n != 1 {
				t.Errorf("%s: %d deleted, want 1", name, n)
			}
		}
	}
	wantBuckets(t, c, 0)
}

// A client is forgiven by one command, and this process forgets what it remembered of its bucket.
func TestResetInRedis(t *testing.T) {
	s := newShop(t, dial(t, redistest.Start(t)), `{"name": "user", "limit_keys": ["header:user"],
		"algorithm_config": {"rps": 0.0005, "burst": 1}}`)
	r := order("", "", "")
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		if code := s.send(r); code != want {
			t.Errorf("status %d, want %d", code, want)
		}
	}
	sent := s.commands()
	if err := s.Reset("user", "header:user=u"); err != nil || s.commands() != sent+1 {
		t.Errorf("%v after %d commands, want one", err, s.commands()-sent)
	}
	if code := s.send(r); code != http.StatusOK {
		t.Errorf("status %d after the reset", code)
	}
}

func TestBlockByACostAboveALeaseInRedis(t *testing.T) {
	s := newShop(t, dial(t, redistest.Start(t)), `{"name": "r", "limit_keys": [], "block": "1h",
		"algorithm_config": {"rps": 9, "burst": 50, "cost_source": "response:header:used"}}`)
	if s.send(order("", "60", "")); s.Explain(order("", "", ""))[0].RetryAfter < time.Hour {
		t.Error("is not blocked")
	}
}
