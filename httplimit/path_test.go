package httplimit

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"
)

func TestResolvePath(t *testing.T) {
	for target, want := range map[string]string{
		"/":                    "/",
		"*":                    "*",
		"/v1/x":                "/v1/x",
		"/v1/x/":               "/v1/x/",
		"//v1///x//":           "/v1/x/",
		"/v1/../x":             "/x",
		"/v1/%2e%2e/x":         "/x",
		"/v1/%2E./x":           "/x",
		"/v1/./x/.":            "/v1/x/",
		"/v1/x/..":             "/v1/",
		"/../../x":             "/x",
		"/..":                  "/",
		"/.well-known/...":     "/.well-known/...",
		"/v1/a%2Fb":            "/v1/a%2Fb",
		"/v1/./a%2Fb":          "/v1/a%2Fb",
		"/v1/a%2F":             "/v1/a%2F",
		"/v1/a%5Cb":            "/v1/a%5Cb",
		"/v1/%61":              "/v1/%61",
		"/caf%C3%A9/%20":       "/caf%C3%A9/%20",
		"/v1;x=1/y;z":          "/v1;x=1/y;z",
		"/;jsessionid=1":       "/;jsessionid=1",
		"/a..b/..c/d..":        "/a..b/..c/d..",
		"/%252e%252e/x":        "/%252e%252e/x",
		"/v1/..%2fx":           "",
		"/v1%2f..%2fx":         "",
		"/v1/x%2f%2e%2e":       "",
		"/v1/..%5cx":           "",
		`/v1/..\x`:             "",
		"/v1/.%2fx":            "",
		"/v1/%2f/x":            "/v1/%2f/x",
		"/v1%2f/x":             "/v1%2f/x",
		"/%2fv1/x":             "/%2fv1/x",
		"/v1/a%2f%2fb":         "/v1/a%2f%2fb",
		"/v1/a%5c%2fb":         "/v1/a%5c%2fb",
		"/%5c":                 "/%5c",
		"/v1%2fx/../y":         "",
		"/v1%00/x":             "",
		"/%00":                 "",
		"/x/..;/v1":            "",
		"/x/..;a=b/v1":         "",
		"/x/%2e%2e%3b/v1":      "",
		"/.;/v1":               "",
		"/;a/v1":               "",
		"/x/y%2f..;a/v1":       "",
		"/v1;a%2fb/x":          "",
		"/v1%3b%5cb/x":         "",
		"/v1;a%2fb":            "/v1;a%2fb",
		"/x%2fv1;a/y":          "/x%2fv1;a/y",
		"/v1/\u2024\u2024/x":   "/v1/%E2%80%A4%E2%80%A4/x", // not ASCII dots
		"http://h.test//v1/x?": "/v1/x",
		"http://h.test":        "/",
		"http://h.test//":      "/",
		"/i/h%3A%2F%2Fh.test":  "/i/h%3A%2F%2Fh.test",
		"/v1/%2f/../x":         "",
		"/%2f..":               "",
		"x:http://h.test/v1/x": "", // in Opaque
		"x:v1/x":               "",
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		path, raw, ok := ResolvePath(u)
		if ok != (want != "") {
			t.Errorf("%s: %q %q %v, want %q", target, path, raw, ok, want)
			continue
		}
		resolved := url.URL{Path: path, RawPath: raw}
		if got := resolved.EscapedPath(); ok && got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		if p, r, again := ResolvePath(&resolved); ok && (p != path || r != raw || !again) {
			t.Errorf("%s: resolving %q %q again gives %q %q", target, path, raw, p, r)
		}
	}
}

// An encoded slash and a backslash are slashes to some upstreams, so they are to selectors.
func TestSelectorsTakeEncodedSlashesAsSlashes(t *testing.T) {
	s := &set{Selector: normalized(Selector{PathPrefix: "/v1/"}, false)}
	for _, target := range []string{
		"/v1%2fx", "/v1%5cx", `/v1\x`, "/%76%31/x", "/%2fv1/x", "/v1%2f%2fx", "/%5c%2Fv1/x",
		"/v1%3Ba=b/x", "/v1;a%2fb", "/v1;a%3db%5cx", "/v1%2f;x", `/v1;a\x`,
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		if ok, unclear, _ := picks(&s.Selector, &http.Request{URL: u}, false); !ok || unclear {
			t.Errorf("%s: %v %v", target, ok, unclear)
		}
	}
}

func FuzzResolvePath(f *testing.F) {
	for _, target := range []string{"/v1/../x", "/a%2Fb/./c", "//;x/%2e%2e", `/\..`, "*"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		path, raw, ok := ResolvePath(u)
		if !ok {
			return
		}
		got := &url.URL{Path: path, RawPath: raw}
		if got.RawPath != "" && got.EscapedPath() != raw {
			t.Fatalf("%q: %q is not the path %q", target, raw, path)
		}
		// A server that decodes first, and one that also takes \ as a slash, resolve nothing
		// more but several slashes.
		slashes := regexp.MustCompile("/+").ReplaceAllString(slashed(path), "/")
		if path != "*" && resolved(slashed(path)) != slashes {
			t.Fatalf("%q: %q is %q", target, path, resolved(slashed(path)))
		}
		if p, r, again := ResolvePath(got); p != path || r != raw || !again {
			t.Fatalf("%q: %q %q, then %q %q", target, path, raw, p, r)
		}
	})
}

func TestFoldedPaths(t *testing.T) {
	for _, selector := range []string{
		`"pathExact": "/Login/\u00c9t\u00e9"`, `"pathPrefix": "/LOGIN"`,
	} {
		policy := `{"policies": [{"id": "p", "spec": {"selector": {` + selector + `}, "rules": [` +
			jsonRule("r", "[]", 1, "") + `]}}]}`
		for _, folded := range []bool{false, true} {
			var options []Option
			if folded {
				options = append(options, WithFoldedPaths())
			}
			s := newSite(t, policy, options...)
			s.get("/LoGin/%c3%89t%c3%a9")
			w := s.get("/login/%c3%a9T%c3%89")
			if refused := w.Code == http.StatusTooManyRequests; refused != folded {
				t.Errorf("%s, folded %v: status %d", selector, folded, w.Code)
			}
		}
	}
}
