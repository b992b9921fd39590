package hostile

import (
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// findEnvoy returns the program that ENVOY names, or envoy. Without one it skips the test, or fails
// if REQUIRE_ENVOY is set, as in the gate.
func findEnvoy(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("each Envoy takes a second to start")
	}
	path, err := exec.LookPath(cmp.Or(os.Getenv("ENVOY"), "envoy"))
	if err != nil && os.Getenv("REQUIRE_ENVOY") != "" {
		t.Fatalf("%v, and REQUIRE_ENVOY is set", err)
	}
	if err != nil {
		t.Skipf("%v: the examples for Envoy were not tested", err)
	}
	return path
}

// block returns the block in YAML of a document that begins with a text.
func block(t *testing.T, document, start string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```yaml\n"+start)
	rest, _, _ = strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("%s has no block that begins with %q", document, start)
	}
	return start + rest
}

// replace replaces texts that must be there: one, its replacement, and so on.
func replace(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %q in\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

type tree = map[string]any

// parse returns the value of a text in YAML.
func parse[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// first returns the first item of a list of mappings.
func first(list any) tree { return list.([]any)[0].(tree) }

// edge is the configuration of Envoy in docs/rls.md, with its parts that other examples change. It
// passes requests on to a server that answers each with "hello".
type edge struct {
	whole                        tree
	chain, manager, host, limits tree
}

// patient are texts of the example, and what a test has in their place that counts decisions: a
// slow machine makes no service late.
var patient = []string{"timeout: 0.1s", "timeout: 100s", "- timeout: 1s", "- timeout: 100s"}

// newEdge returns the configuration in front of services. The server is upstream, if that is set.
func newEdge(t *testing.T, upstream http.HandlerFunc, services []*process, pairs ...string) *edge {
	t.Helper()
	if upstream == nil {
		upstream = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }
	}
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	port := func(address string) string {
		_, port, _ := net.SplitHostPort(address)
		return "port_value: " + port
	}
	const endpoint = "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8081}}}}"
	var endpoints []string
	for _, p := range services {
		endpoints = append(endpoints, strings.Replace(endpoint, "port_value: 8081", port(p.proxy), 1))
	}
	text := replace(t, block(t, "rls.md", "static_resources:"), append([]string{
		"0.0.0.0, port_value: 10000", "127.0.0.1, port_value: 0",
		"port_value: 3000", port(s.Listener.Addr().String()),
		endpoint, strings.Join(endpoints, ", "),
	}, pairs...)...)
	e := &edge{whole: parse[tree](t, text)}
	resources := e.whole["static_resources"].(tree)
	e.chain = first(first(resources["listeners"])["filter_chains"])
	e.manager = first(e.chain["filters"])["typed_config"].(tree)
	e.host = first(e.manager["route_config"].(tree)["virtual_hosts"])
	e.limits = resources["clusters"].([]any)[1].(tree)
	return e
}

// add adds one of the further parts of the example at its place. Pairs are replaced
// before.
func (e *edge) add(t *testing.T, key string, pairs ...string) {
	t.Helper()
	part := parse[tree](t, replace(t, block(t, "rls.md", "filters:"), pairs...))[key]
	switch key {
	case "filters":
		e.chain[key] = append(part.([]any), e.chain[key].([]any)...)
	case "http_filters":
		e.manager[key] = append(part.([]any), e.manager[key].([]any)...)
	case "routes":
		e.host[key] = part
	case "transport_socket":
		e.limits[key] = part
	}
}

// front is a running Envoy.
type front struct{ url, admin string }

// start starts an Envoy until the end of the test.
func (e *edge) start(t *testing.T) *front {
	t.Helper()
	any := tree{"socket_address": tree{"address": "127.0.0.1", "port_value": 0}}
	e.whole["admin"] = tree{"address": any}
	text, err := json.Marshal(e.whole)
	if err != nil {
		t.Fatal(err)
	}
	address := filepath.Join(t.TempDir(), "address")
	cmd := exec.CommandContext(t.Context(), findEnvoy(t), "--use-dynamic-base-id", "-l", "error",
		"--concurrency", "2", "--admin-address-path", address,
		"-c", testkit.File(t, "envoy.json", string(text)))
	log := &strings.Builder{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { <-ended })
	f := &front{}
	await(t, "Envoy", func() bool {
		select {
		case <-ended:
			t.Fatalf("Envoy did not start: %s", log)
		default:
		}
		text, _ := os.ReadFile(address)
		f.admin = "http://" + string(text)
		return len(text) > 0 && strings.Contains(f.get("/ready"), "LIVE")
	})
	_, host, _ := strings.Cut(f.get("/listeners"), "::")
	f.url = "http://" + strings.TrimSpace(host)
	return f
}

// get returns a page of the admin server, or "" if it does not answer.
func (f *front) get(path string) string {
	r, err := http.Get(f.admin + path)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

// stat returns the sum of the counters whose names end so.
func (f *front) stat(name string) (sum int) {
	for line := range strings.Lines(f.get("/stats")) {
		if key, value, _ := strings.Cut(line, ": "); strings.HasSuffix(key, name) {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			sum += n
		}
	}
	return sum
}

// checkNoError checks that each request was decided.
func (f *front) checkNoError(t *testing.T) {
	t.Helper()
	if n := f.stat("ratelimit.error"); n != 0 {
		t.Errorf("%d requests without a decision", n)
	}
}

// send sends n requests over a few connections, and returns how many had each status: 0 if there
// was no response. change may be nil.
func (f *front) send(t *testing.T, n int, change func(r *http.Request, i int)) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	counts := map[int]int{}
	for worker := range 4 {
		group.Go(func() {
			for i := worker; i < n; i += 4 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if change != nil {
					change(r, i)
				}
				status := 0
				if answer, err := http.DefaultClient.Do(r); err == nil {
					io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
					status = answer.StatusCode
				}
				mu.Lock()
				counts[status]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return counts
}
