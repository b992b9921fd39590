package rls

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// yearly is a file with a domain d whose key k has this many hits in the test.
func yearly(hits string) string {
	return "domain: d\ndescriptors:\n" + limit("k", "unit: year, requests_per_unit: "+hits)
}

// running is a command under way.
type running struct {
	*testkit.Running
	address, admin, dir string
}

// write replaces a file of the configuration in one step.
func (r *running) write(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(r.dir, ".next")
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, filepath.Join(r.dir, name))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// parseFlags returns the command of these flags.
func parseFlags(t *testing.T, flags ...string) (*Command, error) {
	t.Helper()
	c := &Command{}
	parser, err := kong.New(c, Vars)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(flags)
	return c, err
}

// run runs a command on free ports with a file d.yaml, or without --config if text is "".
func run(t *testing.T, text string, flags ...string) *running {
	t.Helper()
	r := &running{dir: t.TempDir()}
	if text != "" {
		r.write(t, "d.yaml", text)
		flags = append([]string{"--config", r.dir}, flags...)
	}
	c, err := parseFlags(t, append([]string{"--listen=127.0.0.1:0", "--admin=127.0.0.1:0",
		"--shutdown-delay=0s", "--shutdown-timeout=1m"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	r.Running = testkit.Run(t, c.Run)
	banner := regexp.MustCompile("Listening on (.+?): |metrics: (.*)/metrics\n")
	for _, m := range banner.FindAllStringSubmatch(r.Banner, -1) {
		r.address, r.admin = r.address+m[1], r.admin+m[2]
	}
	return r
}

// dial returns a client of an address.
func dial(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	if len(options) == 0 {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// query asks for a hit of k, and returns the answer in short form.
func query(t *testing.T, conn *grpc.ClientConn) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, request(0, "k=v"),
		grpc.WaitForReady(true))
	if err != nil {
		return err.Error()
	}
	return short(r)
}

// The service answers over TCP and over a Unix socket, and replaces a socket that was left behind.
func TestListen(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, flags := range [][]string{nil, {"--listen=unix://" + socket}, {"--listen=unix:" + socket}} {
		if flags != nil {
			l, err := daemon.Listen("unix:" + socket)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := daemon.Listen("unix:" + socket); err == nil {
				t.Error("two listeners of one socket")
			}
			l.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
			l.Close()
		}
		r := run(t, yearly("1"), flags...)
		conn := dial(t, r.address)
		expect(t, r.address, []string{query(t, conn), query(t, conn)}, "OK OK:0", "OVER OVER:0")
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(socket); flags != nil && err == nil {
			t.Error("the socket is left behind")
		}
	}
}

// A change of the files is put in force, and the buckets stay. A file with an error changes
// nothing, and the log has its place.
func TestReload(t *testing.T) {
	r := run(t, yearly("2"))
	conn := dial(t, r.address)
	expect(t, "before", []string{query(t, conn)}, "OK OK:1")
	r.write(t, "d.yaml", strings.Replace(yearly("3"), "unit: year", "unit: yesterday", 1))
	line := r.Log.Until(t, "msg=configuration error=")
	if !strings.Contains(line, `d.yaml:3: unit \"yesterday\"`) {
		t.Error(line)
	}
	expect(t, "error", []string{query(t, conn)}, "OK OK:0")
	r.write(t, "d.yaml", yearly("5, burst: 4"))
	r.Log.Until(t, "configuration reloaded")
	expect(t, "after", []string{query(t, conn)}, "OVER OVER:0")
	r.write(t, "e.yaml", strings.Replace(yearly("1"), "domain: d", "domain: e", 1))
	if line := r.Log.Until(t, "configuration reloaded"); !strings.Contains(line, "domains=2") {
		t.Error(line)
	}
	metrics := get(t, r.admin+"/metrics")
	for _, want := range []string{
		`tb_rls_config_reloads_total{outcome="accepted"} 2`,
		`tb_rls_config_reloads_total{outcome="rejected"} 1`, "tb_rls_config_last_reload_successful 1",
		`tb_rls_hits_total{decision="within_limit",domain="d",rule="k"} 2`,
		`tb_rls_hits_total{decision="over_limit",domain="d",rule="k"} 1`,
		`tb_keys{rule="k",set="d"} 1`, `tb_rls_requests_total{outcome="ok"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// The live page has the rules and the buckets that were refused, without the keys.
func TestLivePage(t *testing.T) {
	r := run(t, yearly("1"))
	conn := dial(t, r.address)
	for range 3 {
		query(t, conn)
	}
	state := func() (s struct {
		Title, Where string
		Rules        []struct{ Set, Name string }
		Buckets      []struct {
			Rule, Key       string
			Refused         int
			Level, Capacity float64
		}
	}) {
		if err := json.Unmarshal([]byte(get(t, r.admin+"/api/state")), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := state()
	if s.Title != "tb-rls" || len(s.Rules) != 1 || s.Rules[0].Set != "d" || len(s.Buckets) != 1 {
		t.Fatalf("%+v", s)
	}
	if b := s.Buckets[0]; b.Rule != "d/k" || b.Refused != 2 || b.Capacity != 1 || b.Level > 0.01 ||
		!strings.HasPrefix(b.Key, "k=sha256:") {
		t.Errorf("%+v", b)
	}
	r.write(t, "d.yaml", "domain: d")
	r.Log.Until(t, "configuration reloaded")
	if s := state(); len(s.Buckets) != 0 {
		t.Errorf("the bucket of a rule that is gone: %+v", s.Buckets)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// With --check, the command prints the warnings of the files, and has their errors.
func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		yearly("1"): "1 rules in 1 domains", "bad: 1": "unknown",
	} {
		name := testkit.File(t, "f.yaml", "name: n\n"+text)
		c, err := parseFlags(t, "--check", "--config", name)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := c.Run(t.Context(), cli.IO{Stdout: &out, Stderr: io.Discard}); err != nil {
			out.WriteString(err.Error())
		}
		warning := "warning: " + name + ":1: name has no effect here\n"
		if got := out.String(); !strings.HasPrefix(got, warning) || !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The command does not start with an error in a flag, a file or an address.
func TestStartErrors(t *testing.T) {
	good := testkit.File(t, "good.yaml", yearly("1"))
	bad := testkit.File(t, "bad.yaml", "domain: d\nbad: 1")
	for _, c := range []struct {
		want  string
		flags []string
	}{
		{"--config, --xds: want one of them", nil},
		{"--check: want --config", []string{"--xds", "h:1", "--check"}},
		{"--max-keys", []string{"--config", good, "--max-keys=0"}},
		{"--tls-cert, --tls-key", []string{"--config", good, "--tls-cert=x"}},
		{"--tls-client-ca", []string{"--config", good, "--tls-client-ca=x"}},
		{"--field-names: want three", []string{"--config", good, "--field-names=a,b"}},
		{"--field-names: want three", []string{"--config", good, "--field-names=a,b,c d"}},
		{"--max-streams", []string{"--config", good, "--max-streams=0"}},
		{"--keepalive-time=-1s: want 0s or more", []string{"--config", good, "--keepalive-time=-1s"}},
		{"--redis-timeout", []string{"--config", good, "--redis-timeout=0s"}},
		{"not in memory", []string{"--config", good, "--redis=h:1", "--max-keys=5"}},
		{"bad.yaml:2: field bad is unknown", []string{"--config", bad}},
		{"no such file", []string{"--config", "/none"}},
		{"no file *.yaml", []string{"--config", t.TempDir()}},
		{"want the path", []string{"--config", good, "--listen=unix://"}},
		{"--listen", []string{"--config", good, "--listen=256.0.0.1:1"}},
		{"--admin", []string{"--config", good, "--listen=127.0.0.1:0", "--admin=256.0.0.1:1"}},
		{"no such file", []string{"--config", good, "--tls-cert=/none", "--tls-key=/none"}},
	} {
		command, err := parseFlags(t, c.flags...)
		if err == nil {
			err = command.Run(t.Context(), cli.IO{Stdout: io.Discard, Stderr: io.Discard})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.flags, err, c.want)
		}
	}
}
