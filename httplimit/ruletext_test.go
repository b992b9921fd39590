package httplimit

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A client that spreads the tokens left over the effective window keeps to the rate.
func TestPaceOfTheFieldIsThatOfThePolicy(t *testing.T) {
	for _, c := range []struct{ rps, burst, want string }{
		{"0.5", "1800", "r=1799 t=3598"},
		{"100", "200", "r=199 t=2"},
		{"1e9", "1000000000", "r=999999999 t=1"},
		{"0.000000001", "1073741824", "r=1073741823 t=999999999068677"},
		{"0.1", "2", "r=1 t=10"},
		{"0.1", "1", "r=0 t=10"},
		{"5", "10", "r=9 t=2"},
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
			r, t1 := twoParams(t, w, "RateLimit")
			q, window := twoParams(t, w, "RateLimit-Policy")
			if float64(r)*float64(window) > float64(t1)*float64(q)*(1+1e-9) {
				t.Errorf("%s/s and %s: r=%d t=%d is faster than q=%d w=%d", c.rps, c.burst, r, t1, q,
					window)
			}
		}
	}
}

// The tokens times the window need more than 64 bits, and rounding up carries into the upper ones.
func TestPaceOfALongWindow(t *testing.T) {
	const seconds = 931_320
	limit := tb.Limit{Capacity: 1<<30 - 1, Tokens: 1, Per: seconds * time.Second}
	for _, left := range []int{1, 33_038_209, 33_038_210, 1<<30 - 2} {
		l, err := New(Rules(Rule{Name: "r", Limit: limit}),
			WithStore(referenceStore{t: t, answers: answers{decision: &tb.Decision{
				Allowed: true, Remaining: left,
			}}}))
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		l.Decide(w, request())
		wants(t, w, sprintf(`RateLimit: "r";r=%d;t=%d`, left, int64(left)*seconds))
	}
}

// twoParams returns the parameters of the only item of a list.
func twoParams(t *testing.T, w *httptest.ResponseRecorder, name string) (a, b int64) {
	t.Helper()
	list, err := httpsfv.UnmarshalList(w.Header().Values(name))
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	params := list[0].(httpsfv.Item).Params
	names := params.Names()
	x, _ := params.Get(names[0])
	y, _ := params.Get(names[1])
	return x.(int64), y.(int64)
}

// The quota of a rule that counts bytes has their unit.
func TestPolicyOfBytes(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""), WithFields(Fields{Policy: true}))
	wants(t, s.get(), `RateLimit-Policy: "r";q=100;w=100;qu="content-bytes"`)
}
