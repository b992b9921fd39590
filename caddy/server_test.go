package tokenbucket

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// dataDir is the folder of Caddy's files. Caddy cleans it in the background, so it outlives a test.
var dataDir string

func TestMain(m *testing.M) {
	var err error
	if dataDir, err = os.MkdirTemp("", "caddy"); err == nil {
		err = os.Setenv("XDG_DATA_HOME", dataDir)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dataDir) // Caddy may still write there
	os.Exit(code)
}

// server is Caddy in this process, with a configuration.
type server struct {
	t   *testing.T
	url string
	log string // the name of its file

	client *http.Client
}

// start starts Caddy with a Caddyfile, without any limiters of before. Its server listens on a free
// port.
func start(t *testing.T, caddyfile string) *server {
	t.Helper()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, log: filepath.Join(t.TempDir(), "log"), client: &http.Client{}}
	s.load(caddyfile)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// site is a site with a limiter of this name and rules.
func site(name, rules string) string {
	return "http://:80 {\ntoken_bucket " + name + " {\n" + rules + "}\nrespond ok\n}"
}

// perHour is a rule whose buckets do not refill while a test runs.
func perHour(name string, burst, lines string) string {
	return "rule " + name + " {\nrate 1/h\nburst " + burst + "\n" + lines + "\n}\n"
}

// load loads a Caddyfile in place of the configuration before.
func (s *server) load(caddyfile string) {
	s.t.Helper()
	if err := s.loadConfig(mustAdapt(s.t, caddyfile)); err != nil {
		s.t.Fatal(err)
	}
}

// loadConfig loads a configuration in JSON, whose server gets a free port.
func (s *server) loadConfig(config map[string]any) error {
	s.t.Helper()
	server := at(config, "apps", "http", "servers", "srv0")
	server["listen"] = []string{"127.0.0.1:0"}
	server["automatic_https"] = map[string]any{"disable": true}
	config["storage"] = map[string]any{"module": "file_system", "root": dataDir}
	if config["admin"] == nil {
		config["admin"] = map[string]any{"disabled": true, "config": map[string]any{"persist": false}}
	}
	config["logging"] = map[string]any{"logs": map[string]any{"default": map[string]any{
		"level": "INFO", "writer": map[string]any{"output": "file", "filename": s.log},
	}}}
	text, err := json.Marshal(config)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := caddy.Load(text, true); err != nil {
		return err
	}
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		s.t.Fatal(err)
	}
	s.url = "http://" + app.(*caddyhttp.App).Servers["srv0"].Listeners()[0].Addr().String()
	return nil
}

// wantError starts Caddy with a configuration that it rejects.
func wantError(t *testing.T, config map[string]any, want string) {
	t.Helper()
	s := &server{t: t, log: filepath.Join(t.TempDir(), "log")}
	if err := s.loadConfig(config); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nthe error is %v, want %s", config, err, want)
	}
}

// mustAdapt returns the JSON of a Caddyfile.
func mustAdapt(t *testing.T, caddyfile string) map[string]any {
	t.Helper()
	config, err := adapt(caddyfile)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func adapt(caddyfile string) (config map[string]any, err error) {
	text, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile),
		map[string]any{"filename": "Caddyfile"})
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	return config, err
}

func at(config map[string]any, path ...string) map[string]any {
	for _, name := range path {
		config = config[name].(map[string]any)
	}
	return config
}

type response struct {
	*http.Response
	body string
}

// want sends a request with header fields, as in "X-Api-Key: k", and checks the status of its
// response. A line that starts with a slash is the path, and a line without a colon is the method.
func (s *server) want(status int, lines ...string) response {
	s.t.Helper()
	method, path, header := http.MethodGet, "/", http.Header{}
	for _, line := range lines {
		name, value, isField := strings.Cut(line, ": ")
		switch {
		case isField:
			header.Add(name, value)
		case line[0] == '/':
			path = line
		default:
			method = line
		}
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header, r.Host = header, header.Get("Host")
	w, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if w.StatusCode != status {
		s.t.Fatalf("%q: status %d, want %d\n%s", lines, w.StatusCode, status, body)
	}
	return response{w, string(body)}
}

// logged returns the lines of the log that have a text.
func (s *server) logged(text string) (lines []string) {
	s.t.Helper()
	for line := range strings.Lines(readFile(s.t, s.log)) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// fields checks fields of the response, as in "Retry-After: 1". Without a value, the response must
// lack the field.
func (w response) fields(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, want, _ := strings.Cut(line, ":")
		if got := strings.Join(w.Header.Values(name), ", "); got != strings.TrimSpace(want) {
			t.Errorf("%s is %q, want %q", name, got, strings.TrimSpace(want))
		}
	}
}
