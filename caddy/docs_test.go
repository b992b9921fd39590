package tokenbucket

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const document = "../docs/caddy.md"

// blocks returns the code blocks of the document in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	fenced := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	for _, m := range fenced.FindAllStringSubmatch(readFile(t, document), -1) {
		all = append(all, m[1])
	}
	return all
}

func TestTheFirstExample(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
	}))
	defer upstream.Close()
	address := strings.TrimPrefix(upstream.URL, "http://")
	s := start(t, strings.Replace(blocks(t, "caddyfile")[0], "localhost:3000", address, 1))
	for range 5 {
		if w := s.want(200, "POST", "/login", "Host: example.com"); w.body != "hello" {
			t.Error(w.body)
		}
	}
	w := s.want(429, "POST", "/login", "Host: example.com")
	const want = "Too many requests. Try again in "
	if !strings.HasPrefix(w.body, want+w.Header.Get("Retry-After")+" s.") {
		t.Error(w.body)
	}
	s.want(200, "/login", "Host: example.com")
}

func TestAllExamplesRun(t *testing.T) {
	files, handlers := blocks(t, "caddyfile"), blocks(t, "json")
	if len(files) < 2 || len(handlers) == 0 {
		t.Errorf("%d Caddyfiles and %d handlers", len(files), len(handlers))
	}
	policy := filepath.Join(t.TempDir(), "policy.json")
	writeFile(t, policy, `{"name": "a", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 5, "burst": 10}}`)
	for _, text := range files {
		start(t, strings.Replace(text, "policy.json", policy, 1))
	}
	for _, text := range handlers {
		s := start(t, site("", perHour("r", "1", "key none")))
		config := mustAdapt(t, "http://:80 {\nrespond ok\n}")
		var handler map[string]any
		if err := json.Unmarshal([]byte(text), &handler); err != nil {
			t.Fatal(err)
		}
		server := at(config, "apps", "http", "servers", "srv0")
		route := map[string]any{"handle": []any{handler}}
		server["routes"] = append([]any{route}, server["routes"].([]any)...)
		if err := s.loadConfig(config); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
		s.want(200)
	}
}

// The tables have all options, and no other words.
func TestTheTablesHaveTheOptions(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| (`[a-z0-9_`, ]+`) \\|")
	var documented []string
	tables, _, _ := strings.Cut(readFile(t, document), "## JSON")
	for _, m := range row.FindAllStringSubmatch(tables, -1) {
		for _, name := range strings.Split(m[1], ", ") {
			documented = append(documented, strings.Trim(name, "`"))
		}
	}
	options := []string{}
	for _, l := range []lines{(&parser{handler: new(Handler)}).lines(), new(ruleParser).lines()} {
		options = slices.AppendSeq(options, maps.Keys(l))
	}
	options = slices.DeleteFunc(options, func(name string) bool { return name == "rule" })
	slices.Sort(options)
	if slices.Sort(documented); !slices.Equal(documented, options) {
		t.Errorf("%s has %q, want %q", document, documented, options)
	}
}
