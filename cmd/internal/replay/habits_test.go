package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
)

func agentLine(client, path, agent string, second int) string {
	return fmt.Sprintf(`%s - - [17/May/2015:10:%02d:%02d +0000] "GET %s HTTP/1.1" 200 1 "-" "%s"`+"\n",
		client, second/60, second%60, path, agent)
}

// The crawler is refused at ten requests a second, and asks for many paths. The other client, which
// is refused too, asks for /login most of the time, and the others are not refused.
func TestTheReportSaysWhomALimitHurts(t *testing.T) {
	var log strings.Builder
	for second := range 60 {
		for i := range 10 {
			path := fmt.Sprintf("/%c/x", 'a'+i)
			log.WriteString(agentLine("192.0.2.1", path, "Mozilla/5.0 (compatible; Googlebot/2.1;"+
				" +http://www.google.com/bot.html)", second))
			if path = "/login"; i%3 == 2 {
				path = fmt.Sprintf("/%c/x", 'a'+second%20)
			}
			log.WriteString(agentLine("192.0.2.2", path, "curl/8", second))
		}
		log.WriteString(agentLine("192.0.2.3", "/", "bingbot", second))
		log.WriteString(agentLine("192.0.2.4", "/", "-", second))
	}
	in := input("a.log", log.String())
	rep := replay(t, options(t, "1", 5), in).Report
	text := rendered(t, &rep)
	for _, want := range []string{"192.0.2.1  Googlebot\n", "192.0.2.2  mostly /login\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	rep = replay(t, suggestOptions(t, "50%", "1"), in).Report
	text = rendered(t, &rep)
	for _, want := range []string{"192.0.2.1  Googlebot\n", "192.0.2.2  mostly /login\n",
		"192.0.2.3  bingbot  mostly /\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Beyond the first requests only a few are looked at, and the habits of many clients stay bounded.
func TestHabitsAreBounded(t *testing.T) {
	h := habits{clients: sketch.NewSummary[habit](maxTracked)}
	for i := range firstHabits + 20_000 {
		h.add(key(i), &accesslog.Record{Path: []byte("/p")})
	}
	seen := 0
	for e := range h.clients.All() {
		seen += e.Value.requests
	}
	if n := h.clients.Len(); n != maxTracked || seen > firstHabits+20_000/everyHabit+1 {
		t.Errorf("%d clients with %d requests", n, seen)
	}
}
