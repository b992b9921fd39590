package replay

import (
	"fmt"
	"strings"
	"testing"
)

func agentLine(client, path, agent string, second int) string {
	line := strings.Replace(line(client, second, 1), "/p", path, 1)
	return strings.TrimSuffix(line, "\n") + ` "-" "` + agent + "\"\n"
}

// One client is a crawler that asks for many paths, and the other asks for /login most of the time.
func TestTheReportSaysWhomALimitHurts(t *testing.T) {
	var log strings.Builder
	for i := range 200 {
		path := fmt.Sprintf("/%c/x", 'a'+i%10)
		log.WriteString(agentLine("192.0.2.1", path, "Mozilla/5.0 (compatible; Googlebot/2.1)", i))
		if i%3 < 2 {
			path = "/login"
		}
		log.WriteString(agentLine("192.0.2.2", path, "curl/8", i))
		log.WriteString(agentLine("192.0.2.3", "/", "bingbot", i))
		log.WriteString(agentLine("192.0.2.5", path, fmt.Sprint("Mozilla/5.0 ", i%7), i))
	}
	log.WriteString(agentLine("192.0.2.4", "/", "x", 7200))
	for _, o := range []Options{options(t, "1", 5), suggestOptions(t, "50%", "1")} {
		text := rendered(t, replay(t, o, input("a.log", log.String())))
		for _, want := range []string{"192.0.2.1  Googlebot\n", "192.0.2.2  mostly /login\n",
			"192.0.2.3  bingbot  mostly /\n", "192.0.2.5  mostly /login  7 User-Agents: several people?\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}
