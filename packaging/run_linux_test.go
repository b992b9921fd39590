package packaging

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The program runs in a file system that has nothing else, as the user of the image.
func TestProgramNeedsNoOtherFile(t *testing.T) {
	program := build(t, "..")
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	root := filepath.Dir(program)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	dockerfile := string(read(t, "../Dockerfile"))
	if !strings.Contains(dockerfile, "\nUSER 65532:65532\n") {
		t.Error("the image does not run as user 65532")
	}
	inside := &syscall.SysProcAttr{
		Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532},
	}
	replay := exec.CommandContext(t.Context(), "/tb", "replay", "--sample", "--rate=5", "--burst=10")
	replay.Path, replay.Err, replay.Dir, replay.SysProcAttr = "/tb", nil, "/", inside
	if out, err := replay.CombinedOutput(); err != nil {
		t.Errorf("tb replay: %v\n%s", err, out)
	}
	proxy := exec.CommandContext(t.Context(), "/tb-proxy", "--listen=127.0.0.1:0", "--admin=off",
		"--shutdown-delay=0s")
	proxy.Path, proxy.Err, proxy.Dir, proxy.SysProcAttr = "/tb-proxy", nil, "/", inside
	serve(t, proxy)
}

// The commands of the unit do what its directives say: they check the policy, serve, reload on a
// signal, and keep the state.
func TestServiceCommands(t *testing.T) {
	program := build(t, "..")
	unit, state := string(read(t, "tb-proxy.service")), t.TempDir()
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"name": "per-address", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 5, "burst": 10}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	buckets := regexp.MustCompile(`"TB_BUCKETS=(.*)/var/lib/tb(/.*)"`).FindStringSubmatch(unit)
	if buckets == nil || !strings.Contains(unit, "\nStateDirectory=tb\n") {
		t.Fatal("the unit has no state")
	}
	command := func(directive string) *exec.Cmd {
		line := regexp.MustCompile(`(?m)^` + directive + `=(.*)$`).FindStringSubmatch(unit)
		if line == nil {
			t.Fatalf("the unit has no %s", directive)
		}
		words := strings.Fields(strings.NewReplacer("/usr/local/bin/tb", program,
			"/etc/tb/policy.json", policy, "$TB_BUCKETS", buckets[1]+state+buckets[2],
			"$TB_FLAGS", "--listen=127.0.0.1:0 --admin=off --shutdown-delay=0s").Replace(line[1]))
		return exec.CommandContext(t.Context(), words[0], words[1:]...)
	}
	if out, err := command("ExecStartPre").CombinedOutput(); err != nil {
		t.Errorf("ExecStartPre: %v\n%s", err, out)
	}
	if !strings.Contains(unit, "\nExecReload=/bin/sh -c 'kill -HUP $MAINPID'\n") {
		t.Error("a reload is not SIGHUP")
	}
	log := serve(t, command("ExecStart"), syscall.SIGHUP)
	if !strings.Contains(log, "policy reloaded") {
		t.Errorf("SIGHUP does not reload the policy:\n%s", log)
	}
	if len(read(t, filepath.Join(state, "buckets.json"))) == 0 {
		t.Error("the service keeps no state")
	}
}

func TestUnit(t *testing.T) {
	program := build(t, "..")
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit := filepath.Join(t.TempDir(), "tb-proxy.service")
	text := strings.ReplaceAll(string(read(t, "tb-proxy.service")), "/usr/local/bin/tb", program)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", "--man=no", unit},
		{"security", "--offline=yes", "--threshold=15", unit}, // 1.5 of 10, where 0 is locked up
	} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// serve starts a proxy, makes a request, sends the signals and stops the proxy. It returns the log.
func serve(t *testing.T, proxy *exec.Cmd, signals ...os.Signal) string {
	t.Helper()
	stdout, err := proxy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := proxy.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	first, _ := bufio.NewReader(stdout).ReadString('\n')
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(first)
	resp, err := http.Get(url + "/")
	if err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("RateLimit") == "" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	for _, s := range signals {
		if err := proxy.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // until the signal had its effect
			log.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "because=SIGHUP") {
				break
			}
		}
	}
	if err := proxy.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
	}
	if err := proxy.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, log.String())
	}
	return log.String()
}

// NOTICE has the licences of what is linked into the programs, whatever the platform is.
func TestNotice(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	file := filepath.Join(t.TempDir(), "NOTICE")
	if out, err := exec.Command("../scripts/notice", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Equal(read(t, "../cmd/NOTICE"), read(t, file)) {
		t.Error("cmd/NOTICE is not what is linked: run scripts/notice")
	}
}
