package outbound

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What a server says becomes the limit of the key. Six requests come at the same time, and six when
// they have been answered.
func TestLearning(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string // of the first attempts; the rest has the last one
		want    string
	}{
		"nothing": {[]string{"200"}, "0 0 0 0 0 0, 0.1 0.1 0.1 0.1 0.1 0.1"},
		"a policy": {[]string{`200
			RateLimit-Policy: "a";q=3;w=6
			RateLimit: "a";r=2;t=2`}, "0 0 0 0 0 0, 0.1 0.1 2.1 4.1 6.1 8.1"},
		"a limit and a reset": {[]string{`200
			X-RateLimit-Limit: 10
			X-RateLimit-Remaining: 3
			X-RateLimit-Reset: 20`}, "0 0 0 0 0 0, 0.1 0.1 0.1 2.1 4.1 6.1"},
		"a limit a minute": {[]string{`200
			x-ratelimit-limit-requests: 60
			x-ratelimit-remaining-requests: 4
			x-ratelimit-reset-requests: 56s`}, "0 0 0 0 0 0, 0.1 0.1 0.1 0.1 1.1 2.1"},
		"the shorter of two": {[]string{`200
			RateLimit-Policy: "hour";q=1000;w=3600, "minute";q=10;w=60
			RateLimit: "minute";r=5;t=1`}, "0 0 0 0 0 0, 0.1 0.1 0.1 0.1 0.1 6.1"},
		"of another unit": {[]string{`200
			x-ratelimit-limit-tokens: 60
			x-ratelimit-remaining-tokens: 4
			x-ratelimit-reset-tokens: 56s`}, "0 0 0 0 0 0, 0.1 0.1 0.1 0.1 0.1 0.1"},
		"a wait": {[]string{"200", "200", "429\nRetry-After: 10", "200"},
			"0 0 0 0 0 0, 10.1 10.2 10.3 10.4 10.5 10.6"},
		"a wait, and a limit": {
			[]string{"200", "200", "429\nRetry-After: 10\nRateLimit-Policy: 4;w=8", "200"},
			"0 0 0 0 0 0, 10.1 12.1 14.1 16.1 18.1 20.1"},
		"nothing is left": {[]string{`200
			X-RateLimit-Remaining: 0
			X-RateLimit-Reset: 10`, "200"}, "0 0 0 0 0 0, 10.1 10.2 10.3 10.4 10.5 10.6"},
		"a refusal without a wait": {[]string{"200", "200", "429", "200"},
			"0 0 0 0 0 0, 0.1 0.2 0.3 0.4 0.5 0.6"},
		"nonsense": {[]string{`200
			RateLimit-Policy: "a";q=0.5;w=0, "b";q=1e308, "c";w=9`}, "0 0 0 0 0 0, 0.1 0.1 0.1 0.1 0.1 0.1"},
	} {
		bubble(name, func(t *testing.T) {
			s := newScript()
			s.latency = 100 * time.Millisecond
			s.answer = func(n int, r *http.Request) *http.Response {
				return respond(r, c.answers[min(n, len(c.answers)-1)])
			}
			client := New(s)
			sendAll(t, client, abc...)
			sendAll(t, client, abc...)
			sent := strings.Fields(s.sent())
			if got := strings.Join(sent[:6], " ") + ", " + strings.Join(sent[6:], " "); got != c.want {
				t.Errorf("sent at %s, want %s", got, c.want)
			}
			if got := strings.Join(s.keys, ""); got != "abcdefabcdef" {
				t.Errorf("the order is %s", got)
			}
		})(t)
	}
}

// A limit is forgotten an hour after the server has said it last, and not before.
func TestLimitIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("200\nRateLimit-Policy: 2;w=2")
		client := New(s)
		sendAll(t, client, "a")
		time.Sleep(time.Hour)
		sendAll(t, client, "a", "a", "a")
		time.Sleep(time.Second)
		sendAll(t, client, "a", "a", "a", "a")
		s.check(t, "0 3600 3600 3601 3602 3602 3602 3602")
	})
}

// A limit of which a part is used when it is learned is not granted again. A longer reset is a
// longer window, and a shorter one is not a shorter window.
func TestLimitThatIsPartlyUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer = func(n int, r *http.Request) *http.Response {
			return respond(r, fmt.Sprintf("200\nX-RateLimit-Limit: 100\nX-RateLimit-Remaining: %d\n"+
				"X-RateLimit-Reset: %d", []int{2, 1, 0, 9, 8}[n], []int{100, 200, 50, 50, 50}[n]))
		}
		client := New(s)
		for range 3 {
			sendAll(t, client, "a")
		}
		sendAll(t, client, "a", "a")
		s.check(t, "0 0 0 50 52")
	})
}

// A server counts in whole tokens, and a part of a token is not lost for that.
func TestPartOfAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const policy = "200\nRateLimit-Policy: \"a\";q=10;w=10\nRateLimit: \"a\";"
		s := newScript(policy+"r=1;t=1", policy+"r=0;t=1", policy+"r=0;t=1")
		client := New(s)
		sendAll(t, client, "a")
		time.Sleep(500 * time.Millisecond)
		sendAll(t, client, "a", "a", "a")
		s.check(t, "0 0.5 1 2")
	})
}

// While one attempt at a time goes, an attempt whose answer does not come delays the others by ten
// seconds, an attempt that gives up delays none, and a deadline is no reason to refuse at once.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429")
		client := New(s)
		sendAll(t, client, "first")
		begin := time.Now()
		s.answer = func(_ int, r *http.Request) *http.Response {
			if r.Header.Get("Key") == "hangs" {
				<-r.Context().Done()
			}
			return respond(r, "200")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		gone, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, key := range []string{"hangs", "gone", "b", "c", "d"} {
			all.Go(func() {
				ctx := ctx
				if key == "gone" {
					ctx = gone
				}
				if _, err := client.RoundTrip(request(ctx, key)); err != nil && key != "gone" {
					t.Errorf("%s after %v: %v", key, time.Since(begin), err)
				}
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		if got := strings.Join(s.keys, " "); got != "first hangs b c d" {
			t.Error(got)
		}
		s.check(t, "0 0 10 10 10")
	})
}

// What waits for its turn goes at once when the server says a limit.
func TestTurnsEndWithALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429", "200\nRateLimit-Policy: 10;w=10")
		s.latency = time.Second
		client := New(s)
		sendAll(t, client, "a")
		sendAll(t, client, "a", "b", "c", "d")
		s.check(t, "0 1 2 2 2")
	})
}

// A cost above a limit that is learned is no error, but takes all of it.
func TestCostAboveALearnedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("200\nRateLimit-Policy: 2;w=4")
		client := New(s, Rules(Rule{Name: "learns", Cost: func(*http.Request) float64 { return 5 }}))
		sendAll(t, client, "a")
		sendAll(t, client, "a", "a")
		s.check(t, "0 0 4")
	})
}

// A rule without a limit remembers a bounded number of keys, and a paused one longer than others.
func TestLearnedKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429\nRetry-After: 600")
		client := New(s, Rules(Rule{Name: "learns", Key: keyOf}))
		for i := range mostKeys + 10 {
			if _, err := client.RoundTrip(request(t.Context(), fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		r := client.limits[0]
		if n := len(r.keys); n != mostKeys {
			t.Errorf("%d keys", n)
		}
		for len(r.keys) > 100 {
			r.forget()
		}
		sendAll(t, client, "0")
		if d := time.Since(s.begin); d != 10*time.Minute {
			t.Errorf("the paused key is sent after %v", d)
		}
	})
}
