//go:build unix

package hostile

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// A policy file that is a named pipe is an error, and neither hangs the start nor the end.
func TestPolicyFileIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if out := fail(t, "--policy="+pipe); !strings.Contains(out, "want a regular file") {
		t.Error(out)
	}
	name := testkit.File(t, "policy.json", generous)
	p := start(t, upstream(t, echo), "--policy="+name)
	if err := os.Rename(pipe, name); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "want a regular file")
	p.signal(t, syscall.SIGHUP)
	p.awaitLog(t, "because=SIGHUP")
	if r, _ := raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nConnection: close\n\n"); r.StatusCode !=
		http.StatusOK {
		t.Error(r.Status)
	}
	p.stop(t)
}
