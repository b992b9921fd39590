package hostile

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// get returns the status of a request with this key.
func (p *process) get(t *testing.T, key string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.proxy, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("K", key)
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// drain takes all tokens of keys, which are 3.
func (p *process) drain(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		for i, want := range []int{200, 200, 200, 429} {
			if got := p.get(t, key); got != want {
				t.Fatalf("request %d of %.10s: %d, want %d", i, key, got, want)
			}
		}
	}
}

// kill ends the process as a crash of the machine would.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	_ = p.wait()
}

// awaitSave waits until a save that began after this call has ended.
func awaitSave(t *testing.T, file string) {
	t.Helper()
	var last os.FileInfo
	saves := 0
	await(t, "a saved state", func() bool {
		info, err := os.Stat(file)
		if err == nil && (last == nil || !os.SameFile(info, last) || info.ModTime() != last.ModTime()) {
			last = info
			saves++
		}
		return saves == 3 // the second may have begun before
	})
}

// A client that has used its tokens gets no more by a restart of the proxy, whether SIGTERM or
// SIGKILL ended the proxy. That includes a key that is kept as a hash, and a rule whose limit
// changes between the two processes.
func TestRestartForgetsNoDebt(t *testing.T) {
	flag := upstream(t, func(http.ResponseWriter, *http.Request) {})
	state := filepath.Join(t.TempDir(), "state")
	long := strings.Repeat("long", 100)
	flags := func(burst int) []string {
		return []string{flag, policy(t, burst, `"header:k"`), "--state=" + state, "--state-interval=10ms"}
	}
	p := start(t, flags(3)...)
	p.drain(t, "terminated", long)
	p.stop(t)
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	p = start(t, flags(3)...)
	p.drain(t, "killed")
	awaitSave(t, state)
	p.kill(t)
	p = start(t, flags(30)...)
	for _, key := range []string{"terminated", long, "killed"} {
		if got := p.get(t, key); got != http.StatusTooManyRequests {
			t.Errorf("%.10s: %d after the restarts", key, got)
		}
	}
	if got := p.get(t, "new"); got != http.StatusOK {
		t.Errorf("a new client: %d", got)
	}
	p.awaitLog(t, "state restored")
	p.stop(t)
	if left, _ := filepath.Glob(state + "?*"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// SIGKILL at any instant leaves a file that the next process reads.
func TestKillDuringSaves(t *testing.T) {
	flag := upstream(t, func(http.ResponseWriter, *http.Request) {})
	state := filepath.Join(t.TempDir(), "state")
	flags := []string{flag, policy(t, 3, `"header:k"`), "--state=" + state, "--state-interval=100us"}
	p := start(t, flags...)
	p.drain(t, "k")
	awaitSave(t, state)
	for i := range 5 {
		for range 20 * i {
			p.get(t, fmt.Sprint("other", i))
		}
		p.kill(t)
		p = start(t, flags...)
		if got := p.get(t, "k"); got != http.StatusTooManyRequests {
			t.Fatalf("kill %d: %d", i, got)
		}
	}
}

// A state that cannot be read keeps the proxy from starting, and the proxy leaves the file as it
// is.
func TestBadStateKeepsTheProxyFromStarting(t *testing.T) {
	dir, bad := t.TempDir(), testkit.File(t, "bad", "{}")
	limits := policy(t, 3, `"header:k"`)
	for name, want := range map[string]string{
		bad: bad + ": httplimit: snapshot: line 1", dir: "want a regular file",
		filepath.Join(dir, "none", "state"): "no such file",
	} {
		if out := fail(t, limits, "--state="+name); !strings.Contains(out, want) {
			t.Errorf("%s, want %s", out, want)
		}
	}
	if text, err := os.ReadFile(bad); err != nil || string(text) != "{}" {
		t.Errorf("%v, the file is %q", err, text)
	}
}

// A state that cannot be saved is in the log and in the metrics, and the proxy goes on. After its
// stop the exit status is 1.
func TestStateThatCannotBeSaved(t *testing.T) {
	flag := upstream(t, func(http.ResponseWriter, *http.Request) {})
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, flag, policy(t, 3, `"header:k"`), "--state="+filepath.Join(dir, "state"),
		"--state-interval=10ms")
	await(t, "a state", func() bool {
		_, err := os.Stat(filepath.Join(dir, "state"))
		return err == nil
	})
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "state not saved")
	p.drain(t, "k")
	if p.terminate(t) == nil {
		t.Error("the exit status is 0")
	}
}

// A state that is a symbolic link stays one, also if its target is not there yet, and the next
// process finds the buckets at the target.
func TestStateIsASymbolicLink(t *testing.T) {
	flag := upstream(t, func(http.ResponseWriter, *http.Request) {})
	link, volume := filepath.Join(t.TempDir(), "state"), t.TempDir()
	target := filepath.Join(volume, "buckets")
	if err := errors.Join(os.Symlink(target, filepath.Join(volume, "latest")),
		os.Symlink(filepath.Join(volume, "latest"), link)); err != nil {
		t.Fatal(err)
	}
	flags := []string{flag, policy(t, 3, `"header:k"`)}
	p := start(t, append(flags, "--state="+link)...)
	p.drain(t, "k")
	p.stop(t)
	if to, err := os.Readlink(link); err != nil || to != filepath.Join(volume, "latest") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	p = start(t, append(flags, "--state="+target)...)
	if got := p.get(t, "k"); got != http.StatusTooManyRequests {
		t.Errorf("%d after the restart, want 429", got)
	}
	p.stop(t)
}
