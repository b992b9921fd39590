package replay

import (
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Without a limit the report shows the first lines, and suggests a limit.
func TestFirstLook(t *testing.T) {
	c := Command{Key: []string{"ip", "user"}, IPv6Prefix: 64, Cost: mustCost(t, "1"),
		MaxKeys: tb.DefaultMaxKeys, Overflow: "forgive"}
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	log := requestLine("GET /a?b HTTP/1.1") + named("h\x1b", 3) + strings.Repeat(line("::1", 4, 1), 9)
	rep := replay(t, o, input("a.log", log)).Report
	const want = `
The first lines, as they are read:

  time                 ip user    request
  2001-09-09 01:46:40  1.1.1.1 -  GET /a?b
  2015-05-17 10:00:04  ::/64 -    GET /p
  2015-05-17 10:00:04  ::/64 -    GET /p
  2015-05-17 10:00:04  ::/64 -    GET /p
  2015-05-17 10:00:04  ::/64 -    GET /p

If that is not so: --key, --trusted-proxies, --field and --format say how to read them.
`
	if text := rendered(t, &rep); !strings.Contains(text, want) ||
		rep.Missing["user"] != rep.Requests || !strings.Contains(text, "\nSuggested: ") {
		t.Errorf("no%s in\n%s", want, text)
	}
	c.Rate = mustRate(t, "1")
	if _, err := c.options(); err == nil {
		t.Error("a rate without a burst asks for a suggestion")
	}
}
