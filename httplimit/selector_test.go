package httplimit

import (
	"net/http"
	"net/url"
	"testing"
)

func TestSelectorPicksPaths(t *testing.T) {
	for _, c := range []struct {
		selector Selector
		path     string
		want     bool
	}{
		{Selector{PathPrefix: "/v1/"}, "/v1/", true},
		{Selector{PathPrefix: "/v1/"}, "/v1/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1", false},
		{Selector{PathPrefix: "/v1"}, "/v1/x", true},
		{Selector{PathPrefix: "/v1"}, "/v1", false},
		{Selector{PathPrefix: "/v1"}, "/v10", false},
		{Selector{PathPrefix: "/"}, "/", true},
		{Selector{PathPrefix: "/"}, "", true},
		{Selector{PathPrefix: "/"}, "/x", true},
		{Selector{PathExact: "/v1"}, "/v1", true},
		{Selector{PathExact: "/v1"}, "/v1/", false},
		{Selector{PathExact: "/v1/"}, "/v1/", true},
		{Selector{PathExact: "/a", PathPrefix: "/b"}, "/a", true},
		{Selector{PathExact: "/a", PathPrefix: "/b"}, "/b/x", true},
		{Selector{PathExact: "/a", PathPrefix: "/b"}, "/c", false},
		// Other spellings of the same path, in the policy and in the request.
		{Selector{PathPrefix: "//v1/./"}, "/v1/x", true},
		{Selector{PathExact: "/a/../v1"}, "/v1", true},
		{Selector{PathPrefix: "/v1"}, "//v1/x", true},
		{Selector{PathPrefix: "/v1"}, "/./v1//x", true},
		{Selector{PathPrefix: "/v1"}, "/x/../v1/x", true},
		{Selector{PathPrefix: "/v1"}, "/v1/..", false},
		{Selector{PathPrefix: "/v1"}, "/v1/x/..", true},
		{Selector{PathPrefix: "/v1"}, "/v1/.", true},
		{Selector{PathPrefix: "/v1"}, "v1/x", true},
		{Selector{PathExact: "/v1"}, "/../v1", true},
		// Parameters before the last segment.
		{Selector{PathPrefix: "/v1/"}, "/v1;a=b/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;a=b/", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;a=b;c/x;d", true},
		{Selector{PathPrefix: "/v1/x"}, "/v1;a/x;b//y", true},
		{Selector{PathPrefix: "/v1/"}, "/y;a/../v1;b/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;a", false},
		{Selector{PathPrefix: "/v1/"}, "/v10;a/x", false},
		{Selector{PathExact: "/v1/x"}, "/v1;a/x", true},
		{Selector{PathExact: "/v1/x"}, "/v1;a/x;b", false},
		{Selector{PathExact: "/v1/x;b"}, "/v1;a/x;b", true},
	} {
		s := &set{Selector: normalized(c.selector, false)}
		r := &http.Request{URL: &url.URL{Path: c.path}}
		if got, _ := picks(&s.Selector, r, false); got != c.want {
			t.Errorf("%+v picks %q: %v", c.selector, c.path, got)
		}
	}
}

func TestSelectorPicksHostsAndMethods(t *testing.T) {
	s := &set{Selector: normalized(Selector{
		Hosts: []string{"A.example", "[::1]"}, Methods: []string{"POST", "put"},
	}, false)}
	for _, c := range []struct {
		method, host string
		want         bool
	}{
		{"POST", "a.example", true},
		{"PUT", "A.EXAMPLE:8080", true},
		{"POST", "a.example.", true},
		{"POST", "a.example:80:90", true}, // to servers that read up to the first colon
		{"POST", "[::1]:80", true},
		{"POST", "[::1]:80:90", true},
		{"POST", "[::1]", true},
		{"POST", "[0:0::1]:80", true},
		{"GET", "a.example", false},
		{"post", "a.example", true},
		{"POST", "b.example", false},
		{"POST", "", false},
	} {
		if got, _ := picks(&s.Selector, &http.Request{
			Method: c.method, Host: c.host,
			URL: &url.URL{},
		}, false); got != c.want {
			t.Errorf("%s %s: %v", c.method, c.host, got)
		}
	}
}
