package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A session has 5 requests and an address has 20, whatever the cookies. Only the proxy may name an
// address, and a change of the file is in force within a second.
func TestSite(t *testing.T) {
	text, err := os.ReadFile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(text))
	synctest.Test(t, func(t *testing.T) {
		site, err := newSite(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		// granted returns how many of ten requests are granted.
		granted := func(peer, session, forwarded string) (n int) {
			for range 10 {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = peer
				r.AddCookie(&http.Cookie{Name: "sid", Value: session})
				r.Header.Set("Forwarded", forwarded)
				w := httptest.NewRecorder()
				if site.ServeHTTP(w, r); w.Code == http.StatusOK {
					n++
				}
			}
			return n
		}
		const proxy = "127.0.0.1:5"
		for i, c := range []struct {
			peer, session, forwarded string
			want                     int
		}{
			{proxy, "a", "for=192.0.2.1", 5}, {proxy, "b", "for=192.0.2.1", 5},
			{proxy, "c", "for=192.0.2.1", 5}, {proxy, "d", "for=192.0.2.1", 5},
			{proxy, "e", "for=192.0.2.1", 0}, {proxy, "f", "for=198.51.100.1, for=192.0.2.1", 0},
			{proxy, "g", `for="[2001:db8::1]:4711"`, 5}, {"192.0.2.1:5", "h", "for=203.0.113.1", 0},
		} {
			if got := granted(c.peer, c.session, c.forwarded); got != c.want {
				t.Errorf("line %d: %d of 10 requests are granted, want %d", i, got, c.want)
			}
		}
		// A file with a mistake leaves the change before it in force.
		for _, text := range []string{strings.Replace(string(text), `"burst": 5`, `"burst": 7`, 1), "{"} {
			write(text)
			time.Sleep(time.Minute) // all buckets are full again
			if got := granted(proxy, "i", "for=192.0.2.1"); got != 7 {
				t.Errorf("after %s: %d of 10 requests are granted, want 7", text, got)
			}
		}
	})
}
