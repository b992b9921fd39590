package httplimit

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
)

func TestUpstreamFieldsAreDroppedIfOursAreSet(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range []string{
			"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
			"X-RateLimit-Used",
		} {
			w.Header().Set(f, "77")
		}
		w.Header().Set("RateLimit", `"upstream";r=7;t=7`)
		io.WriteString(w, "hello")
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: ModifyResponse,
	}
	policy := jsonRules("", jsonRule("ours", `["header:k"]`, 9, ""))
	loud := mustNew(t, policy, WithFields(Fields{XRateLimit: true})).Middleware(proxy)
	front := httptest.NewServer(loud)
	defer front.Close()
	quiet := mustNew(t, policy, WithFields(Fields{OnlyRefused: true})).Middleware(proxy)
	silent := httptest.NewServer(quiet)
	defer silent.Close()
	nested := httptest.NewServer(mustNew(t, policy).Middleware(quiet))
	defer nested.Close()
	get := func(url, k string) *httptest.ResponseRecorder {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("K", k)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		w := httptest.NewRecorder()
		maps.Copy(w.Header(), res.Header)
		return w
	}
	w := get(front.URL, "1")
	wants(t, w, "RateLimit-Limit: 9", "RateLimit-Remaining: 8", "RateLimit-Reset: 1",
		"X-RateLimit-Used: ", "X-RateLimit-Limit: 9")
	if got := items(t, w, "RateLimit"); !slices.Equal(got, []string{
		"ours r=8 t=8",
		"upstream r=7 t=7",
	}) {
		t.Errorf("%q", got)
	}
	wants(t, get(nested.URL, "1"), "RateLimit-Limit: 9", "RateLimit-Reset: 1", "X-RateLimit-Used: ")
	// No rule applies, or grants are silent: the upstream's fields stay.
	for _, w := range []*httptest.ResponseRecorder{get(front.URL, ""), get(silent.URL, "1")} {
		wants(t, w, "RateLimit-Limit: 77", "RateLimit-Reset: 77", "X-RateLimit-Used: 77",
			`RateLimit: "upstream";r=7;t=7`)
	}
}
