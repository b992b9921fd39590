package hostile

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block returns the block in YAML of a document that begins with a text. In it, pairs are replaced:
// a text that must be there, its replacement, and so on.
func block(t *testing.T, document, start string, pairs ...string) string {
	t.Helper()
	_, text, ok := strings.Cut(read(t, document), "```yaml\n"+start)
	if text, _, _ = strings.Cut(text, "```\n"); !ok {
		t.Fatalf("%s has no block that begins with %q", document, start)
	}
	return replace(t, start+text, pairs...)
}

// example returns an example for Envoy, in which pairs are replaced.
func example(t *testing.T, name string, pairs ...string) string {
	t.Helper()
	return replace(t, read(t, "packaging/envoy/"+name), pairs...)
}

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

// edge is the example for Envoy, with its parts that other examples change.
type edge struct {
	whole                        tree
	chain, manager, host, limits tree
}

// patient are texts of the example, and what tests that count decisions have in their place, so
// that a slow machine makes no service late.
var patient = []string{"timeout: 0.1s", "timeout: 100s", "{timeout: 1s,", "{timeout: 100s,"}

// newEdge returns the configuration between an upstream and services.
func newEdge(t *testing.T, upstream http.HandlerFunc, rls []*process, pairs ...string) *edge {
	t.Helper()
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	port := strings.NewReplacer("127.0.0.1:", "port_value: ")
	const endpoint = "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8081}}}}"
	var endpoints []string
	for _, p := range rls {
		endpoints = append(endpoints, strings.Replace(endpoint, "port_value: 8081",
			port.Replace(p.proxy), 1))
	}
	e := &edge{whole: parse[tree](t, example(t, "envoy.yaml", append([]string{
		"0.0.0.0, port_value: 10000", "127.0.0.1, port_value: 0",
		"port_value: 3000", port.Replace(s.Listener.Addr().String()),
		endpoint, strings.Join(endpoints, ", "),
	}, pairs...)...))}
	resources := e.whole["static_resources"].(tree)
	e.chain = first(first(resources["listeners"])["filter_chains"])
	e.manager = first(e.chain["filters"])["typed_config"].(tree)
	e.host = first(e.manager["route_config"].(tree)["virtual_hosts"])
	e.limits = resources["clusters"].([]any)[1].(tree)
	e.whole["admin"] = parse[tree](t, "address: {socket_address: {address: 127.0.0.1, port_value: 0}}")
	return e
}

// add adds one of the further parts of the example at its place.
func (e *edge) add(t *testing.T, key string, pairs ...string) {
	t.Helper()
	part := parse[tree](t, example(t, "parts.yaml", pairs...))[key]
	at := map[string]tree{
		"filters": e.chain, "http_filters": e.manager, "routes": e.host, "transport_socket": e.limits,
	}[key]
	if key == "filters" || key == "http_filters" {
		part = append(part.([]any), at[key].([]any)...)
	}
	at[key] = part
}

// front is a running Envoy.
type front struct{ url, admin string }

// start starts an Envoy until the end of the test.
func (e *edge) start(t *testing.T) *front {
	t.Helper()
	if testing.Short() {
		t.Skip("each Envoy takes a second to start")
	}
	config, err := json.Marshal(e.whole)
	if err != nil {
		t.Fatal(err)
	}
	address := filepath.Join(t.TempDir(), "address")
	p, _ := launch(t, newLog(t), find(t, "envoy"), "--use-dynamic-base-id", "--concurrency", "2",
		"-l", "error", "--admin-address-path", address,
		"-c", testkit.File(t, "envoy.json", string(config)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.logged(t))
		}
	})
	f := &front{}
	await(t, "Envoy", func() bool {
		text, _ := os.ReadFile(address)
		f.admin = "http://" + string(text)
		return len(text) > 0 && strings.Contains(f.get("/ready"), "LIVE")
	})
	f.url = "http://" + regexp.MustCompile(`::(.+)`).FindStringSubmatch(f.get("/listeners"))[1]
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

// stat returns a counter.
func (f *front) stat(name string) (n int) {
	_, text, _ := strings.Cut(f.get("/stats"), "\n"+name+": ")
	fmt.Sscan(text, &n)
	return n
}

// send sends n requests, and returns how many had each status: 0 if there was no response. name
// may be a field, in whose value N stands for the number of the request.
func (f *front) send(t *testing.T, n int, name, value string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for i := range n {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Close = name == "Connection"; name != "" {
			r.Header.Set(name, strings.ReplaceAll(value, "N", strconv.Itoa(i)))
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			counts[0]++
			continue
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		counts[answer.StatusCode]++
	}
	return counts
}
