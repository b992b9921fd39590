package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
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

// A user copies what a suggestion prints: the flags and the policy.
func TestTheSuggestionRunsAsPrinted(t *testing.T) {
	log := strings.Repeat(validLine, 12) + strings.Repeat("starting\n", 13)
	status, stdout, stderr := tb(t, log, "replay", "--suggest=1%", "--trusted-proxies=10.0.0.0/8",
		"--allow-malformed", "-")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, stderr %q", status, stderr)
	}
	flags := func(command string) []string {
		found := regexp.MustCompile(`(?m)^  tb ` + command + ` (.*)$`).FindStringSubmatch(stdout)
		if found == nil {
			t.Fatalf("no tb %s in\n%s", command, stdout)
		}
		return append([]string{command}, strings.Fields(found[1])...)
	}
	replay := flags("replay")
	replay[len(replay)-1] = "-" // FILE
	status, report, stderr := tb(t, log, replay...)
	if status != 0 || stderr != "" || !regexp.MustCompile(`refused +0 `).MatchString(report) {
		t.Errorf("%q: status %d, stderr %q, stdout\n%s", replay, status, stderr, report)
	}

	policy := regexp.MustCompile(`(?ms)^{.*^}$`).FindString(stdout)
	file := testkit.File(t, "policy.json", policy)
	proxy := flags("proxy")
	for i, arg := range proxy {
		if arg == "policy.json" {
			proxy[i] = file
		}
	}
	proxy = append(proxy, "--listen=127.0.0.1:0", "--admin=off", "--shutdown-delay=0s")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &stopper{stop: cancel}
	if status := program.Run(ctx, proxy, cli.IO{
		Stdin: os.Stdin, Stdout: out, Stderr: io.Discard,
	}); status != 0 || !strings.Contains(out.String(), "Listening on ") {
		t.Errorf("%q with\n%s\nstatus %d, stdout %q", proxy, policy, status, out.String())
	}
}

// The file that --export is written to has nothing but the limits.
func TestExportsAreAlone(t *testing.T) {
	status, stdout, stderr := tb(t, "", "replay", "--sample", "--export", "nginx")
	if status != 0 || !strings.HasPrefix(stdout, "# For http { }") ||
		!strings.HasSuffix(stdout, "limit_req_status 429;\n") || !strings.Contains(stderr, "Suggested: ") {
		t.Errorf("status %d, stdout\n%s\nstderr\n%s", status, stdout, stderr)
	}
	if status, _, stderr := tb(t, "", "replay", ""); status != 2 ||
		!strings.Contains(stderr, "want the name of a FILE, and not an empty one") {
		t.Errorf("a file without a name: status %d, stderr %q", status, stderr)
	}
	status, stdout, stderr = tb(t, validLine, "replay", "--key", "path", "--export", "policy", "-")
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
		!strings.Contains(stderr, "rule per-key needs header:X-Api-Key") ||
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
