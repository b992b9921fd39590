package httplimit

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestAllOrNothing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("user", `["header:u"]`, 3, ""),
		jsonRule("tenant", `["header:t"]`, 5, ""), jsonRule("global", `[]`, 9, "")))
	left := func(u string) (all []int) {
		for _, e := range s.Explain(request("U: "+u, "T: 1")) {
			// The tokens left now, and not after the request.
			n := e.Remaining
			if e.Allowed {
				n++
			}
			all = append(all, n)
		}
		return all
	}
	s.granted(3, "U: a", "T: 1")
	for range 5 {
		s.get("U: a", "T: 1") // refused for the user: tenant and global are not charged
	}
	if got := left("a"); !slices.Equal(got, []int{0, 2, 6}) {
		t.Errorf("%v are left", got)
	}
	s.granted(2, "U: b", "T: 1") // refused for the tenant: the user is not charged
	if got := left("b"); !slices.Equal(got, []int{1, 0, 4}) {
		t.Errorf("%v are left", got)
	}
	for i, want := range []RuleStats{
		{Granted: 5, Refused: 6},
		{Granted: 5, Refused: 1},
		{Granted: 5},
	} {
		if got := s.Stats()[i]; got.Granted != want.Granted || got.Refused != want.Refused {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Many goroutines send requests to a few rules. No rule grants more than its burst, and each
// granted request has taken from all rules.
func TestAllOrNothingOfConcurrentRequests(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("address", `["ip:address"]`, 700, ""),
		jsonRule("key", `["header:k"]`, 300, ""), jsonRule("both", `["ip:address", "header:k"]`,
			250, "")))
	const goroutines, each = 8, 200
	h := s.Middleware(http.HandlerFunc(nothing))
	done := make(chan int)
	for g := range goroutines {
		go func() {
			granted := 0
			for range each {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, request(sprintf("K: %d", g%4))); w.Code == http.StatusOK {
					granted++
				}
			}
			done <- granted
		}()
	}
	total := 0
	for range goroutines {
		total += <-done
	}
	// A request may have been refused because of tokens that another request then gave back,
	// so some tokens may be left. No token is lost.
	for _, st := range s.Stats() {
		if st.Granted != uint64(total) {
			t.Errorf("%s granted %d of %d", st.Rule, st.Granted, total)
		}
	}
	if total > 700 {
		t.Errorf("%d granted, of 700", total)
	}
	for i := 700 - total; i > 0; i-- {
		if w := s.get("K: other"); i <= 250 && w.Code != http.StatusOK {
			t.Fatalf("%d of 700 were granted, and %d more are refused", total, i)
		}
	}
}
