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

	"github.com/seed-181794aa/ratelimit/httplimit"
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
	if err := s.load(caddyfile); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// load loads a Caddyfile in place of the configuration before.
func (s *server) load(caddyfile string) error {
	s.t.Helper()
	config, err := adapt(caddyfile)
	if err != nil {
		return err
	}
	return s.loadConfig(config)
}

// config returns the JSON of a Caddyfile whose servers have this address.
func (s *server) config(caddyfile, address string) map[string]any {
	s.t.Helper()
	config, err := adapt(caddyfile)
	if err != nil {
		s.t.Fatal(err)
	}
	s.listen(config, address)
	return config
}

// loadConfig loads a configuration in JSON, whose servers get the same free port.
func (s *server) loadConfig(config map[string]any) error {
	s.t.Helper()
	s.listen(config, "127.0.0.1:0")
	if err := s.run(config); err != nil {
		return err
	}
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		s.t.Fatal(err)
	}
	s.url = "http://" + app.(*caddyhttp.App).Servers["srv0"].Listeners()[0].Addr().String()
	return nil
}

// listen sets the address of all servers of a configuration.
func (s *server) listen(config map[string]any, address string) {
	for _, v := range at(config, "apps", "http", "servers") {
		server := v.(map[string]any)
		server["listen"] = []string{address}
		server["automatic_https"] = map[string]any{"disable": true}
	}
}

func (s *server) run(config map[string]any) error {
	s.t.Helper()
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
	return caddy.Load(text, true)
}

// adapt returns the JSON of a Caddyfile.
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

// response is a response with its body.
type response struct {
	*http.Response
	body string
}

// get sends a request with header fields, as in "X-Api-Key: k". A line that starts with a slash is
// the path, and a line without a colon is the method.
func (s *server) get(lines ...string) response {
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
	return response{w, string(body)}
}

// want sends a request and checks the status of its response.
func (s *server) want(status int, lines ...string) response {
	s.t.Helper()
	w := s.get(lines...)
	if w.StatusCode != status {
		s.t.Fatalf("%q: status %d, want %d\n%s", lines, w.StatusCode, status, w.body)
	}
	return w
}

// stats returns the statistics of a limiter.
func (s *server) stats(name string) []httplimit.RuleStats {
	s.t.Helper()
	app, err := caddy.ActiveContext().App(appName)
	if err != nil {
		s.t.Fatal(err)
	}
	return app.(*App).used[name].limiter.Stats()
}

// logged returns the lines of the log that have a text.
func (s *server) logged(text string) (lines []string) {
	s.t.Helper()
	log, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
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
