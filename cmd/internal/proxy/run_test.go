package proxy

import (
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// Without flags the banner says what runs, and how to go on.
func TestBanner(t *testing.T) {
	r := run(t, func(*Command) {})
	got := strings.NewReplacer(r.proxy, "PROXY", r.admin, "ADMIN").Replace(r.Banner)
	const want = `Listening on PROXY, with a demo upstream behind it.
Each address gets 5 requests a second, and 10 at once.

  curl -i PROXY/

Live page: ADMIN/, metrics: ADMIN/metrics
For your own server and limits, add --upstream http://localhost:3000 --policy FILE.
This is the policy in force:

` + demoPolicy + `
Ctrl-C stops the proxy.
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	first, body := get(t, r.proxy)
	if first.StatusCode != http.StatusOK || first.Header.Get("RateLimit-Limit") != "10" ||
		body != "The demo upstream got GET \"/\".\n" {
		t.Error(first.Status, first.Header, body)
	}
	if _, metrics := get(t, r.admin+"/metrics"); !strings.Contains(metrics,
		`tb_requests_total{outcome="granted",rule="per-address",set=""} 1`) {
		t.Error(metrics)
	}
}

// The policy file is read again on SIGHUP and when it changes.
func TestPolicyFileIsReadAgain(t *testing.T) {
	name := file(t, two)
	r := run(t, func(c *Command) { c.Policy = name })
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Skip(err) // Windows has no SIGHUP
	}
	if line := r.Log.Until(t, "policy reloaded"); !strings.Contains(line, "because=SIGHUP rules=1") {
		t.Error(line)
	}
	write(t, name, strings.Replace(two, `"burst": 2`, `"burst": 3`, 1))
	r.Log.Until(t, `because="the file changed" rules=1`)
}

func TestRunErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, change := range map[string]func(*Command){
		"--listen: ": func(c *Command) { c.Listen = taken.Addr().String() },
		"--admin: ":  func(c *Command) { c.Admin = taken.Addr().String() },
		"no such":    func(c *Command) { c.Policy = "/none/policy.json" },
		"is not accepted:\nname must not be empty": func(c *Command) {
			c.Policy = file(t, `{"name": "", "limit_keys": [],
				"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`)
		},
	} {
		c := parse(t)
		c.Listen, c.Admin = "127.0.0.1:0", "127.0.0.1:0"
		change(c)
		std := cli.IO{Stdout: testkit.NewTranscript(), Stderr: testkit.NewTranscript()}
		err := c.Run(t.Context(), std)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The banner names what is there: no demo in front of a real upstream, and no page if it is off.
func TestNoDemo(t *testing.T) {
	r := run(t, func(c *Command) {
		c.Policy = off
		_ = c.Upstream.UnmarshalText([]byte("http://127.0.0.1:1"))
	})
	if strings.Contains(r.Banner, "demo") || !strings.Contains(r.Banner, "Nothing is limited.") {
		t.Error(r.Banner)
	}
	r = run(t, func(c *Command) { c.Admin, c.Fields = off, "refused" })
	if strings.Contains(r.Banner, "metrics") || len(port.FindAllString(r.Banner, -1)) != 2 {
		t.Error(r.Banner)
	}
	if first, _ := get(t, r.proxy); first.StatusCode != http.StatusOK ||
		first.Header.Get("RateLimit-Limit") != "" {
		t.Error(first.Status, first.Header)
	}
}
