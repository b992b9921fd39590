package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/proxy"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// stopper is the stdout of a proxy. It stops the proxy when the banner says that it listens.
type stopper struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (s *stopper) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if strings.Contains(s.String(), "Listening on ") {
		s.stop()
	}
	return n, err
}

// A user copies the next steps that a suggestion prints.
func TestTheSuggestionRunsAsPrinted(t *testing.T) {
	log := strings.Repeat(validLine, 100) + laterLine
	status, stdout, stderr := tb(t, log, "replay", "--suggest=1%", "--trusted-proxies=10.0.0.0/8", "-")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	page, policy := filepath.Join(t.TempDir(), "page.html"), ""
	step := func(name string) []string {
		found := regexp.MustCompile(`(?m)^  ` + name +
			` +tb(?:-proxy)? (.*?)(?: FILE.*)?$`).FindStringSubmatch(stdout)
		if found == nil {
			t.Fatalf("no step %s in\n%s", name, stdout)
		}
		return strings.Fields(strings.NewReplacer("page.html", page, "policy.json",
			policy).Replace(found[1]))
	}
	for name, want := range map[string]string{
		"Try it": "It refuses 0 of 1 client ", "See it": "Suggested limit: ", "Export it": `"ip:address"`,
		"Protect a path": "Limits by path",
	} {
		status, report, stderr := tb(t, log, append(step(name), "-")...)
		if status != 0 || !strings.Contains(report, want) {
			t.Errorf("%s: status %d, stderr %q, no %q in\n%s", name, status, stderr, want, report)
		}
		if name == "Export it" {
			policy = testkit.File(t, "policy.json", report)
		}
	}
	args := append(step("Run it"), "--listen=127.0.0.1:0", "--admin=off", "--shutdown-delay=0s")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &stopper{stop: cancel}
	other := cli.Program{
		Name: "tb-proxy", Commands: func() any { return new(proxy.Command) },
		Options: []kong.Option{proxy.Vars},
	}
	if status := other.Run(ctx, args, cli.IO{
		Stdin: os.Stdin, Stdout: out, Stderr: io.Discard,
	}); status != 0 || !strings.Contains(out.String(), "Listening on ") {
		t.Errorf("%q with\n%s\nstatus %d, stdout %q", args, policy, status, out.String())
	}
}

// The file that --export is written to has nothing but the limits.
func TestExportsAreAlone(t *testing.T) {
	status, stdout, stderr := tb(t, "", "replay", "--sample", "--export", "nginx")
	if status != 0 || !strings.HasPrefix(stdout, "# For http { }") ||
		!strings.HasSuffix(stdout, "limit_req_status 429;\n") || !strings.Contains(stderr,
		"Suggested limit: ") {
		t.Errorf("status %d, stdout\n%s\nstderr\n%s", status, stdout, stderr)
	}
	if status, _, stderr := tb(t, "", "replay", ""); status != 2 ||
		!strings.Contains(stderr, "the name of a FILE is empty") {
		t.Errorf("a file without a name: status %d, stderr %q", status, stderr)
	}
	status, stdout, stderr = tb(t, strings.Repeat(validLine, 100)+laterLine, "replay", "--key", "path",
		"--export", "policy", "-")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "a policy has no key for path") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestReplayOfAPolicy(t *testing.T) {
	const rule = `{"name": "per-key", "limit_keys": ["header:x-api-key"],
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`
	policy := testkit.File(t, "policy.json", rule)
	status, stdout, stderr := tb(t, validLine, "replay", "--policy", policy, "-")
	if status != 1 || !strings.Contains(stdout, "enforce  per-key") ||
		!strings.Contains(stderr, "no request has header:X-Api-Key, "+
			"which rule per-key of --policy needs") ||
		!strings.Contains(stderr, "policy.json: warning: ") {
		t.Errorf("status %d, stderr %q, stdout\n%s", status, stderr, stdout)
	}
	const log = `{"ts": 1431857103, "uri": "/", "http_x_api_key": "k"}` + "\n"
	status, stdout, _ = tb(t, log+log, "replay", "--policy", policy, "--json", "-")
	if status != 0 || !strings.Contains(stdout, `"refused": 1`) {
		t.Errorf("status %d, stdout\n%s", status, stdout)
	}
	status, stdout, stderr = tb(t, log, "replay", "--policy", policy+"x", "-")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "no such file") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
