package httplimit

import (
	"net/http"
	"strings"
	"testing"
)

// Spellings that mean the same to servers have one bucket and one match.
func TestSpellingsOfFieldValues(t *testing.T) {
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	field := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		key, want   string // of a match
		same, other []func(*http.Request)
	}{
		{
			"header:host", "Api.test:8080",
			[]func(*http.Request){host("api.test"), host("API.test"), host("api.test:80"),
				host("api.test."), host("Api.TEST.:443")},
			[]func(*http.Request){host("b.test"), host("api.test.b"), host("")},
		},
		{
			"header:Authorization", "Bearer  Ab",
			[]func(*http.Request){field("Authorization", "Bearer Ab"),
				field("Authorization", "bearer\tAb"), field("Authorization", "BEARER   Ab ")},
			[]func(*http.Request){field("Authorization", "Bearer ab"),
				field("Authorization", "BearerAb"), field("Authorization", "Basic Ab"),
				field("Authorization", "Bearer AQ=="), field("Authorization", "Bearer Ab Ab")},
		},
		{
			"header:authorization", "Basic dTpw",
			[]func(*http.Request){field("Authorization", "basic dTpw"),
				field("Authorization", "BASIC  dTpw==")},
			[]func(*http.Request){field("Authorization", "basic dTpx"), field("Authorization", "Basic"),
				field("Authorization", "Basic dTpw x")},
		},
		{
			"header:proxy-authorization", "basic dTo=",
			[]func(*http.Request){field("Proxy-Authorization", "Basic dTo="),
				field("Proxy-Authorization", "Basic dTo"), field("Proxy-Authorization", "Basic dTp=")},
			[]func(*http.Request){field("Proxy-Authorization", "Basic dTo=x")},
		},
		{
			"header:content-type", "Application/json",
			[]func(*http.Request){field("Content-Type", "application/json"),
				field("Content-Type", "application/JSON ; charset=utf-8"),
				field("Content-Type", "application/json;x=1;y=2")},
			[]func(*http.Request){field("Content-Type", "application/jsonp"),
				field("Content-Type", "text/plain;application/json")},
		},
	} {
		s := newSite(t, jsonRules("", jsonRule("r", `["ip:address"]`, 99, sprintf(`"match": {%q: %q}`,
			c.key, c.want))))
		keys := newSite(t, jsonRules("", jsonRule("r", sprintf("[%q]", c.key), 1,
			`"on_missing": "shared"`)))
		for i, change := range c.same {
			r := request()
			change(r)
			if got := s.Explain(r); len(got) != 1 {
				t.Errorf("%s, spelling %d: the match does not hold", c.key, i)
			}
			if w := keys.send(r); (w.Code == http.StatusOK) != (i == 0) {
				t.Errorf("%s, spelling %d: status %d", c.key, i, w.Code)
			}
		}
		for i, change := range c.other {
			r := request()
			change(r)
			if got := s.Explain(r); len(got) != 0 {
				t.Errorf("%s, other value %d: the match holds", c.key, i)
			}
			if w := keys.send(r); w.Code != http.StatusOK {
				t.Errorf("%s, other value %d: status %d", c.key, i, w.Code)
			}
		}
	}
}

// A cookie has one bucket for all spellings that some server reads as the same value.
func TestCookies(t *testing.T) {
	s := newSite(t, jsonRule("r", `["cookie:connect.sid"]`, 1, `"match": {"cookie:plan": "free"}`))
	for _, c := range []struct{ lines, want string }{
		{"plan=free; connect.sid=s%3Aa", "s:a"}, {`connect.sid="s:a";plan = free`, "s:a"},
		{"plan=free;\tconnect.sid =s:a ;x", "s:a"}, {"plan=free; Connect.Sid=a", ""},
		{"plan=free; connect.sid=a=b%", "a=b%"}, {"plan=free; connect.sid=", ""}, {"plan=free", ""},
		{"plan=free; connect.sid=a; connect.sid=a", "twice"}, {"connect.sid=a; plan=paid", ""},
		{"plan=free; connect.sid=a|connect.sid=b", "twice"}, {"plan=free|connect.sid=b", "b"},
	} {
		r := request()
		r.Header["Cookie"] = strings.Split(c.lines, "|")
		got := ""
		for _, e := range s.Explain(r) {
			if got = e.Key[0].Value; e.AmbiguousKey == "cookie:connect.sid" {
				got = "twice"
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	for _, c := range []struct {
		want, value string
		holds       bool
	}{
		{"text/event-stream", "text/event-stream", true},
		{"text/event-stream", "*/*, Text/Event-Stream;q=0.5", true},
		{"text/event-stream", `a/b;x="a,text/event-stream", c/d`, false},
		{"text/event-stream", `a/b;x="\",", text/event-stream`, true},
		{"text/event-stream", "*/*", false},
		{"text/html; charset=utf-8", "text/html", false},
		{"text/html; charset=utf-8", "text/HTML;Charset=UTF-8", true},
		{"text/html; charset=utf-8", `text/html; charset="utf-8"`, true},
		{"text/html; charset=utf-8", "text/html;charset=latin1", false},
		{"text/html;b=1;a=2", "text/html; a=2; b=1", true},
		{"no type;", "No Type;", true},
	} {
		for _, header := range []string{"Accept", "Content-Type"} {
			holds, _ := matcher(header, c.want)
			if got := holds(c.value); got != c.holds {
				t.Errorf("%s: %s matches %s: %v", header, c.value, c.want, got)
			}
		}
	}
	for list, want := range map[string]string{
		"": "", "text/html": "text/html", "Text/HTML": "text/html", "a/b ; c=d,, E/f": "a/b,e/f",
		"ABC": "abc", "A/b": "a/b", "a/Z": "a/z", "a/b;": "a/b", ";": "",
		"a/b,c/d": "a/b,c/d", "a/b\t": "a/b",
		`multipart/form-data; boundary="a,b"`: "multipart/form-data",
	} {
		if got := mediaTypes(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}
