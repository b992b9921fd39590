package httplimit

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestReloadKeepsBucketsOfRules(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("a", `["header:k"]`, 3, ""), jsonRule("b",
		`["ip:address"]`, 5, "")))
	s.granted(3, "K: 1")
	// a has another match and another position, b has another limit, and c is new.
	s.reload(jsonRules("",
		jsonRule("c", `["header:c"]`, 1, ""), jsonRule("b", `["ip:address"]`, 6, ""),
		jsonRule("a", `["header:k"]`, 3, `"match": {"header:k": "1"}`)))
	for _, e := range s.Explain(request("K: 1", "C: 1")) {
		want := map[string]int{"a": 0, "b": 1, "c": 0}[e.Rule]
		if e.Remaining != want {
			t.Errorf("%s: %d left, want %d", e.Rule, e.Remaining, want)
		}
	}
	if got := s.Explain(by("2001:db8::1", "C: 1"))[1]; got.Rule != "b" || got.Remaining != 5 {
		t.Errorf("%+v, want 5 of 6 tokens left", got)
	}
	st := s.Stats()
	if a := st[2]; a.Rule != "a" || a.Granted != 3 || a.Refused != 1 || st[1].Granted != 3 {
		t.Errorf("%+v", st)
	}
	// The rule is the same with another spelling of the header.
	s.reload(jsonRules("", jsonRule("a", `["header:K"]`, 3, "")))
	s.granted(0, "K: 1")
	// The same name with other keys is another rule.
	s.reload(jsonRules("", jsonRule("a", `["query:k"]`, 3, "")))
	s.granted(3, "/?k=1")
}

// While the policy changes under requests, a rule that stays grants exactly its burst, and each
// request is under one of the two policies.
func TestReloadDuringTraffic(t *testing.T) {
	const burst, goroutines, each = 3000, 4, 1000
	stays := jsonRule("stays", "[]", burst, "")
	policies := []*Policy{
		mustParse(t, jsonRules("", stays)),
		mustParse(t, jsonRules("", jsonRule("new", `["ip:address"]`, 1<<20, ""), stays)),
	}
	s := newSite(t, jsonRules("", stays), steady())
	h := s.Middleware(http.HandlerFunc(nothing))
	var ok, seen atomic.Int64
	done := make(chan bool)
	for range goroutines {
		go func() {
			for range each {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, request())
				switch field := w.Header().Get("RateLimit"); {
				case w.Code == http.StatusOK:
					ok.Add(1)
				case w.Code != http.StatusTooManyRequests || field != `"stays";r=0;t=1`:
					t.Errorf("%d %s", w.Code, field)
				}
				seen.Add(1)
			}
			done <- true
		}()
	}
	for i := 0; seen.Load() < goroutines*each; i++ {
		if err := s.SetPolicy(policies[i%2]); err != nil {
			t.Fatal(err)
		}
		s.Stats()
	}
	for range goroutines {
		<-done
	}
	st := s.Stats()
	if kept := st[len(st)-1]; ok.Load() != burst || kept.Granted != burst ||
		kept.Refused != goroutines*each-burst {
		t.Errorf("%d granted, %+v", ok.Load(), kept)
	}
}

// Each of several concurrent reloads starts from the result of the one before, so a new rule gets
// one limiter.
func TestConcurrentReloads(t *testing.T) {
	next := mustParse(t, jsonRules("", jsonRule("new", "[]", 1, "")))
	for range 20 {
		var made atomic.Int64
		l, err := New(Rules(), WithStore(referenceStore{t: t, before: func(step, _ string) error {
			if step == "limiters" {
				made.Add(1)
				for range 100 {
					runtime.Gosched()
				}
			}
			return nil
		}}))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := l.SetPolicy(next); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := made.Load(); n != 1 {
			t.Fatalf("%d limiters were made", n)
		}
	}
}

// A policy that is rejected changes nothing, not even one limit: neither if it has an error, nor if
// a new limiter cannot be made, nor if one of several limiters does not take its limit.
func TestRejectedReloadChangesNoLimit(t *testing.T) {
	rules := func(a, b, c int, more ...string) string {
		return jsonRules("", append(more, jsonRule("a", "[]", a, ""), jsonRule("b", "[]", b, ""),
			jsonRule("c", "[]", c, ""))...)
	}
	s := newSite(t, rules(10, 20, 30), WithStore(referenceStore{
		t: t, before: at("limiters", func(rule string) error {
			if rule == "broken:" {
				return errDown
			}
			return nil
		}),
	}))
	capacities := func() (all []int) {
		for _, st := range s.Stats() {
			all = append(all, st.Limiter.(referenceTier).Limit().Capacity)
		}
		return all
	}
	for _, policy := range []string{
		rules(11, 21, unlucky), rules(unlucky, 21, 31),
		rules(11, 21, 31, jsonRule("broken", "[]", 1, "")), rules(11, 21, 0),
	} {
		p, err := ParsePolicy([]byte(policy))
		if err == nil {
			err = s.SetPolicy(p)
			if err == nil || !strings.HasPrefix(err.Error(), "httplimit: the policy stays as it was: ") {
				t.Errorf("%s: %v", policy, err)
			}
		}
		if got := capacities(); !slices.Equal(got, []int{10, 20, 30}) {
			t.Errorf("%v: the limits are %v", err, got)
		}
	}
	s.reload(rules(11, 21, 31))
	if got := capacities(); !slices.Equal(got, []int{11, 21, 31}) {
		t.Errorf("%v", got)
	}
}
