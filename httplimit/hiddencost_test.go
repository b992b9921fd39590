package httplimit

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A hidden field reaches the limiter and never the client: in the header, in an informational
// response, and as a trailer.
func TestHiddenCost(t *testing.T) {
	const usage = "X-Usage"
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		cost    float64
	}{
		"header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(usage, "25")
			w.Write([]byte("body"))
			w.Header().Set(usage, "26")
		}, 25},
		"header with a string": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(usage, "25")
			io.WriteString(w, "body")
			w.Header().Set(usage, "26")
		}, 25},
		"header with a copy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(usage, "25")
			io.Copy(w, struct{ io.Reader }{strings.NewReader("body")})
			w.Header().Set(usage, "26")
		}, 25},
		"header without body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(usage, "25")
		}, 25},
		"flushed header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(usage, "25")
			w.(http.Flusher).Flush()
			w.Header().Set(usage, "26")
			io.WriteString(w, "body")
		}, 25},
		"informational": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(usage, "25")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set(usage, w.Header().Get(usage)+".5")
			io.WriteString(w, "body")
		}, 25.5},
		"announced trailer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Trailer", "X-A, x-usage")
			w.Header().Add("Trailer", "X-B")
			io.WriteString(w, "body")
			w.Header().Set(usage, "25")
			w.Header().Set("X-A", "a")
			w.Header().Set("X-B", "b")
		}, 10}, // the estimate
		"trailer": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+usage, "25")
			w.Header()[http.TrailerPrefix+"x-usage"] = []string{"25"}
			w.Header().Set(http.TrailerPrefix+"X-A", "a")
			w.Header().Set(http.TrailerPrefix+"X-B", "b")
		}, 10},
	} {
		for _, hide := range []string{"", `, "hide_cost_header": true`} {
			bothProtocols(t, func(t *testing.T, http2 bool) {
				s := serveSite(t, reporting("response:header:x-usage", hide), http2, c.handler)
				r, _ := s.fetch()
				if got := 100 - s.left(); got != c.cost {
					t.Errorf("%s: costs %v, want %v", name, got, c.cost)
				}
				trailers := r.Trailer[usage]
				if strings.HasSuffix(name, "trailer") && r.Trailer.Get("X-A")+r.Trailer.Get("X-B") != "ab" {
					t.Errorf("%s: %v, want the other trailers, too", name, r.Trailer)
				}
				isSeen := len(r.Header[usage])+len(s.hints[usage])+len(trailers) > 0
				if isSeen != (hide == "") || isSeen && s.hints != nil && s.hints.Get(usage) != "25" {
					t.Errorf("%s%s: %v, hints %v", name, hide, r.Header, s.hints)
				}
			})
		}
	}
}

// A field stays hidden if its rule has taken nothing, so that nothing is settled: if a shadow rule
// would have refused the request, or the request passes because its store failed.
func TestHiddenCostOfNothing(t *testing.T) {
	const hide = `, "hide_cost_header": true`
	shadow := jsonRules("", sprintf(`{"name": "usage", "mode": "shadow", "limit_keys": [],
		"algorithm_config": {"rps": 1, "burst": 100, "default_cost": 10,
			"cost_source": "response:header:x-usage" %s}}`, hide), `{"name": "bytes",
		"mode": "shadow", "limit_keys": [],
		"algorithm_config": {"rps": 1, "burst": 100, "cost_source": "response:bytes"}}`)
	down := WithStore(referenceStore{t: t, before: func(step, _ string) error {
		if step == "take all" {
			return errors.New("down")
		}
		return nil
	}})
	for name, c := range map[string]struct {
		site    *site
		settled uint64
		left    float64
	}{
		"shadow": {newSite(t, shadow), 2, 0},
		"store":  {newSite(t, reporting("response:header:x-usage", hide), down), 0, 100},
	} {
		s := c.site
		s.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Usage", "50")
			io.WriteString(w, "body")
		})
		for i := range 4 {
			r := s.get().Result()
			if len(r.Header["X-Usage"]) > 0 {
				t.Errorf("%s, request %d: header %v", name, i, r.Header)
			}
		}
		s.settled(c.settled, 0)
		if all := s.Stats(); len(all) > 1 && all[1].Settled != 4 {
			t.Errorf("%s: %+v, want 4 settled by the rule behind it", name, all[1])
		}
		if s.left() != c.left {
			t.Errorf("%s: %v left, want %v", name, s.left(), c.left)
		}
	}
}
