package httplimit

import (
	"net/http"
	"strconv"
	"testing"
)

// refusal returns the Retry-After of a request that is refused with the given base.
func refusal(t *testing.T, base int, r *http.Request, opts ...Option) int {
	t.Helper()
	s := newSite(t, oneRule("[]", sprintf(`"rps": %.9f, "burst": 1`, min(1,
		1/float64(base)+1e-9))), opts...)
	s.send(r)
	w := s.send(r)
	n, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if err != nil {
		t.Fatal(w.Code, w.Header())
	}
	return n
}

// Also clients that must wait for a second do not come back together.
func TestJitterIsWithinHalfOfBaseAndReachesBothEnds(t *testing.T) {
	for _, base := range []int{1, 2, 3, 4, 5, 10} {
		const clients = 200
		seen, most := map[int]int{}, (base+1)/2
		for i := range clients {
			r := request()
			r.RemoteAddr = sprintf("192.0.2.%d:1", i)
			seen[refusal(t, base, r)-base]++
		}
		for offset, n := range seen {
			if offset < 0 || offset > most || n > clients/(most+1)*3/2 {
				t.Errorf("base %d: %d clients with offset %d", base, n, offset)
			}
		}
		if len(seen) != most+1 {
			t.Errorf("base %d: offsets %v", base, seen)
		}
	}
}

func TestJitterDependsOnSaltSubjectAddressAndPath(t *testing.T) {
	const base = 100_000
	user := func(name string, v any) *http.Request {
		r := request("/p")
		return r.WithContext(ContextWithClaims(r.Context(), map[string]any{name: v}))
	}
	from := func(address string) *http.Request {
		r := request("/p")
		r.RemoteAddr = address
		return r
	}
	all := map[int]string{}
	for _, c := range []struct {
		name string
		r    *http.Request
		opts []Option
	}{
		{"path", request("/p"), nil},
		{"other path", request("/q"), nil},
		{"secret", request("/p"), []Option{WithSharedSecret("s")}},
		{"sub", user("sub", "7"), nil},
		{"other sub", user("sub", "8"), nil},
		{"address", from("[2001:db8::1]:1"), nil},
		{"other address", from("[2001:db8:0:1::1]:1"), nil},
	} {
		got := refusal(t, base, c.r, c.opts...)
		if again := refusal(t, base, c.r, c.opts...); again != got {
			t.Errorf("%s: %d and then %d", c.name, got, again)
		}
		if other, ok := all[got]; ok {
			t.Errorf("%s and %s have the same", c.name, other)
		}
		all[got] = c.name
	}
	same := func(what string, a, b *http.Request) {
		if x, y := refusal(t, base, a), refusal(t, base, b); x != y {
			t.Errorf("%s: %d and %d", what, x, y)
		}
	}
	same("query", request("/p?a"), request("/p?b"))
	same("port and network", from("[2001:db8::1]:1"), from("[2001:db8::ffff]:2"))
	same("user_id", user("sub", "7"), user("user_id", 7))
	same("uid", user("sub", "7"), user("uid", "7"))
	all3 := map[string]any{"sub": "7", "user_id": "8", "uid": "9"}
	both := map[string]any{"user_id": "7", "uid": "9", "sub": ""}
	for _, claims := range []map[string]any{all3, both} {
		r := request("/p")
		same("the first of several", user("sub", "7"),
			r.WithContext(ContextWithClaims(r.Context(), claims)))
	}
	same("header", request("/p", "X: 1"), request("/p", "X: 2"))
}

// The offset is the same in every process and version: these are its values.
func TestJitterIsStable(t *testing.T) {
	for _, c := range []struct {
		path string
		want int
	}{{"/", 1029}, {"/a", 1398}, {"/b", 1074}} {
		if got := refusal(t, 1000, request(c.path), WithSharedSecret("salt")); got != c.want {
			t.Errorf("%s: %d, want %d", c.path, got, c.want)
		}
	}
}
