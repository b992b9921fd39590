package outbound

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What a server says becomes the limit of the key. Six requests come at the same time, and six when
// they have been answered.
func TestLearning(t *testing.T) {
	always := func(lines string) []string { return slices.Repeat([]string{"200\n" + lines}, 12) }
	play(t, scene{
		opts: []Option{}, send: "a b c d e f , a b c d e f", latency: 100 * time.Millisecond,
	}, map[string]scene{
		"a policy": {answers: always(`RateLimit-Policy: "a";q=3;w=6
			RateLimit: "a";r=2;t=2`), want: "0 0 0 0 0 0 0.1 0.1 2.1 4.1 6.1 8.1"},
		"the shorter of two": {
			answers: always(`RateLimit-Policy: "hour";q=1000;w=3600, "minute";q=10;w=60
			RateLimit: "minute";r=5;t=1`), want: "0 0 0 0 0 0 0.1 0.1 0.1 0.1 0.1 6.1"},
		"a wait, and a limit": {
			answers: []string{"200", "200", "429\nRetry-After: 10\nRateLimit-Policy: 4;w=8"},
			want:    "0 0 0 0 0 0 10.1 12.1 14.1 16.1 18.1 20.1"},
		"nothing is left": {answers: []string{"200\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 10"},
			want: "0 0 0 0 0 0 10.1 10.2 10.3 10.4 10.5 10.6"},
		"nonsense": {answers: always(`RateLimit-Policy: "a";q=0.5;w=0, "b";q=1e308, "c";w=9`),
			want: "0 0 0 0 0 0 0.1 0.1 0.1 0.1 0.1 0.1"},
	})
}

// How long a limit is known, what is left of it, and the turns of attempts until it is known.
func TestLearnedLimits(t *testing.T) {
	var used []string // a longer reset is a longer window, and a shorter one is not a shorter window
	for i, left := range []int{2, 1, 0, 9, 8} {
		used = append(used, fmt.Sprintf("200\nX-RateLimit-Limit: 100\nX-RateLimit-Remaining: %d\n"+
			"X-RateLimit-Reset: %d", left, []int{100, 200, 50, 50, 50}[i]))
	}
	const tenth = "200\nRateLimit-Policy: \"a\";q=10;w=10\nRateLimit: \"a\";"
	const unit = "\nRateLimit-Policy: \"a\";qu=tokens;w=1;q="
	costs := Rule{Name: "learns", Cost: func(*http.Request) float64 { return 5 }}
	play(t, scene{opts: []Option{}}, map[string]scene{
		"an hour after the server has said it": {answers: []string{"200\nRateLimit-Policy: 2;w=2"},
			send: "a , a@3600 a a , a@3602 a a a", order: "a a a a a a a a",
			want: "0 3600 3600 3601 3602 3602 3602 3602"},
		"slower than a token in the longest pause": {opts: []Option{WithMaxPause(time.Minute)},
			answers: []string{"200\nRateLimit-Limit: 2\nRateLimit-Remaining: 0\nRateLimit-Reset: 9999"},
			send:    "a , a a", want: "0 60 120"},
		"that comes in a pause of two days, after a slow one": {latency: time.Second,
			answers: []string{"200\nRateLimit-Policy: 3;w=60", "429\nRetry-After: 172800",
				"200\nRateLimit-Policy: 1000000000;w=1"},
			opts: []Option{WithMaxPause(48 * time.Hour)}, send: "a , b c , d", want: "0 1 1 172802"},
		"of which a part is used": {answers: used, send: "a , a , a , a a", want: "0 0 0 50 52"},
		"of which others use": {opts: []Option{Rules(Rule{}), PerHost(1, 5)}, send: "a , a a a a a",
			answers: []string{tenth + "r=6;t=1", tenth + "r=1;t=1"}, want: "0 0.2 0.4 1.2 2.2 3.2"},
		// A server counts in whole tokens.
		"with a part of a token": {answers: []string{
			tenth + "r=3;t=1", tenth + "r=1;t=1", tenth + "r=0;t=1", tenth + "r=0;t=1"},
			send: "a , a , a@0.5 a a", order: "a a a a a", want: "0 0 0.5 1 2"},
		"below the cost, then faster": {opts: []Option{Rules(costs)}, send: "a , a a", want: "0 0 4",
			answers: []string{"200\nRateLimit-Policy: 2;w=9", "200\nRateLimit-Policy: 2;w=4"}},
		"of one of several keys": {opts: []Option{Rules(Rule{Name: "learns", Key: keyOf})},
			answers: []string{"200\nRateLimit-Policy: 1;w=9"}, send: "a , a a b b", order: "a a b b a",
			want: "0 0 0 0 9"},
		"slower, when its key has tokens": {opts: []Option{Rules(Rule{}, perSecond("q", 9, 9))},
			answers: []string{"200\nRateLimit-Policy: 3;w=1", "200\nRateLimit-Policy: 3;w=60"},
			latency: time.Second, send: "a , a a a , a a", want: "0 1 1 1 2 2"},
		// A deadline does not refuse an attempt that waits for its turn.
		"before it, an attempt whose answer does not come": {answers: []string{"429", "200 late"},
			send: "first , hangs<25 gone!1 b<25 c<25 d<25", order: "first hangs b c d",
			want: "0 0 1(context canceled) 10 10 10"},
		"that does not come, and the turns end when none waits": {latency: time.Second,
			answers: []string{"429\nRateLimit-Limit: 5\nRateLimit-Reset: 0"}, // without a window
			send:    "a , a a a@2.5 , a a a", order: "a a a a a a a", want: "0 1 2 3 4 4 4"},
		// The 4th has waited for the turn of the host, the 5th for both, when the host pauses.
		"of several rules": {opts: []Option{Rules(Rule{Name: "key", Key: keyOf}, perSecond("r", 9, 9),
			Rule{Name: "host", Unit: Tokens})}, latency: time.Second, order: "a b a b b",
			answers: []string{"429", "429", "429\nX-RateLimit-Reset-Tokens: 10"},
			send:    "a b@0.5 a@1.1 b@1.2 b@1.6", want: "0 0.5 1.1 12.1 13.1"},
		// What waits for its turn does not hold up another key, also when it has taken anew.
		"before it, and one of another unit": {latency: 1500 * time.Millisecond,
			opts:    []Option{Rules(Rule{Key: keyOf}, Rule{Unit: Tokens})},
			answers: []string{"429" + unit + "9", "200 late", "200" + unit + "1"},
			send:    "a , a<60 a@2 c@4 d@7 d", order: "a a c d d a", want: "0 1.5 4 7 8 11.5"},
		// What has waited for its turn does not leave together, although its slots have come.
		"before it, and another limit": {opts: []Option{Rules(Rule{}), PerHost(1, 1)}, order: "a b c d e",
			answers: []string{"429", "200 late"}, send: "a , b<10 c d e", want: "0 1 10 11 12"},
		"that is learned during a turn": {opts: []Option{Rules(Rule{}), PerHost(1, 4)},
			answers: []string{"429", "200\nRateLimit-Policy: 10;w=10"}, latency: time.Second,
			send: "a b@0.5 c@1.1 d e f", order: "a b c d e f", want: "0 0.5 1.1 1.5 1.75 2"},
		"that ends the turns, of which a part is left": {latency: time.Second,
			answers: []string{"429", tenth + "r=2;t=9"}, send: "a , a a a a", want: "0 1 2 2 3"},
	})
}

// A rule without a limit remembers a bounded number of keys, and a paused one longer than others.
func TestLearnedKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429\nRetry-After: 600")
		client := New(s, Rules(Rule{Name: "learns", Key: keyOf}))
		r := client.rules[0]
		for i := range mostKeys + 10 { // attempts have a key at the same time
			r.get(fmt.Sprint("key ", i))
		}
		for _, k := range r.keys {
			k.users.Store(0)
		}
		for i := range 20 {
			_, _ = client.RoundTrip(request(t.Context(), fmt.Sprint(i)))
		}
		if n := len(r.keys); n != mostKeys {
			t.Errorf("%d keys", n)
		}
		for len(r.keys) > 100 {
			r.forget()
		}
		send(t, s, "0", client)
		if d := time.Since(s.begin); d != 10*time.Minute {
			t.Errorf("the paused key is sent after %v", d)
		}
	})
}
