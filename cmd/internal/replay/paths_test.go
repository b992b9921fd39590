package replay

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func TestGroupsOfPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/login": "/login", "/api/": "/api/", "/api/v1/x": "/api/",
		"/a.b-c_d~e/x": "/a.b-c_d~e/", "//x": "/x", "/%61/x": "/a/", "/../x": "/x", "/a/../x": "/x",
		"": "", "*": "", "/a;b": "", "/.git/x": "", `/a\b`: "", "/a%2f../x": "", "/%zz": "",
		"http": "", "/a b/c": "",
	} {
		if got := groupOf([]byte(path)); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

// The groups are chosen once, even if the first requests have none.
func TestGroupsOfPathsAreChosenOnce(t *testing.T) {
	p := &pathGroups{byPath: make(map[string]*PathLimit)}
	p.add(pending{group: p.of([]byte("*")), client: new(client)})
	if g := p.of([]byte("/late")); g != nil || !p.chosen {
		t.Errorf("%+v is chosen later", g)
	}
}

// pathLog returns a log of visits, each with one request for /login and many below /api/, and the
// lines of /login alone.
func pathLog() (all, login string) {
	rng := rand.New(rand.NewPCG(1, 2))
	second := 0
	for range 200 {
		second += rng.IntN(60)
		client := fmt.Sprintf("192.0.2.%d", rng.IntN(50))
		one := strings.Replace(line(client, second, 1), "/p", "/login", 1)
		login += one
		all += one + strings.Repeat(strings.Replace(one, "/login", "/api/v1?x", 1), 20+rng.IntN(5))
	}
	return all, login
}

// The limit of a path is the one that a log of this path alone has. All limits together refuse the
// clients that the policy refuses.
func TestALimitByPathIsThatOfItsRequests(t *testing.T) {
	all, login := pathLog()
	o := suggestOptions(t, "5%", "")
	want := replay(t, o, input("login.log", login))
	o.ByPath = true
	rep := replay(t, o, input("a.log", all))
	s := rep.Suggestion
	if len(s.Paths) != 2 || s.Paths[0].Path != "/api/" || s.Paths[1].Path != "/login" {
		t.Fatalf("%+v, want /api/ and /login", s.Paths)
	}
	refused := make(map[string]bool)
	policy, err := policyOf(s.plan(rep.Limit), &o)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range replayPolicy(t, policy, input("a.log", all)).Policy.Rules {
		for _, k := range rule.Top {
			refused[k.Key] = true
		}
	}
	if n := uint64(len(refused)); s.Together != n || n == 0 {
		t.Errorf("%d clients refused together, and by the policy %d", s.Together, n)
	}
	got, limit := s.Paths[1], want.Limit
	if !got.Limit.Uncounted {
		t.Error("the times of the requests to a path are kept, which takes memory")
	}
	if got.Requests != want.Requests || got.Clients != want.Keys ||
		got.Limit.Rate != limit.Rate || got.Limit.Burst != limit.Burst ||
		got.Limit.KeysRefused > limit.KeysRefused || !got.Stricter {
		t.Errorf("%+v %+v, want %+v", got, got.Limit, limit)
	}
}

// The share is of the whole policy: each path could refuse other clients.
func TestLimitsByPathShareTheirClients(t *testing.T) {
	var log strings.Builder
	for client := range 400 {
		request := func(path, second int) {
			log.WriteString(strings.Replace(line(fmt.Sprintf("192.0.%d.%d", client/200, client%200),
				second, 1), "/p", fmt.Sprint("/p", path), 1))
		}
		for path := range 4 {
			for i := range 12 { // at once if the path is the client's own, and otherwise slowly
				second := 500*i + path
				if client%40 == path {
					second = 0
				}
				request(path, second)
			}
		}
		for range 60 { // so the limit of all requests is lax
			request(4, 0)
		}
	}
	o := suggestOptions(t, "5%", "")
	o.ByPath = true
	rep := replay(t, o, input("a.log", log.String()))
	s := rep.Suggestion
	if 20*s.Together > rep.Keys || rep.Limit == nil || len(s.Paths) != 5 {
		t.Errorf("%d of %d clients are refused by limits of %d paths", s.Together, rep.Keys, len(s.Paths))
	}
	o.ByPath = false
	all := replay(t, o, input("a.log", log.String())).Suggestion.Rates
	if !slices.Equal(s.Rates, all) {
		t.Errorf("all requests need %v by path, and otherwise %v", s.Rates, all)
	}
	for _, p := range s.Paths {
		if p.Limit.Burst < leastBurst {
			t.Errorf("%s has a burst of %d", p.Path, p.Limit.Burst)
		}
	}
}

// What is exported is accepted by the program that it is for.
func TestExports(t *testing.T) {
	all, _ := pathLog()
	o := suggestOptions(t, "5%", "")
	o.ByPath, o.IPv6Prefix = true, 48
	o.Trusted = networks(t, "10.0.0.0/8", "fd00::/8")
	texts := make(map[string]string)
	for _, name := range []string{"policy", "nginx"} {
		o.Export = &name
		var text strings.Builder
		if err := replay(t, o, input("a.log", all)).printExport(&text); err != nil {
			t.Fatal(err)
		}
		if texts[name] = text.String(); !strings.Contains(texts[name], "/login") ||
			strings.Contains(texts[name], "/api") {
			t.Errorf("%s:\n%s", name, texts[name])
		}
	}
	p, err := cli.ParsePolicy([]byte(texts["policy"]))
	if err != nil || len(p.Sets) != 2 || p.Sets[1].Selector.PathExact != "/login" {
		t.Errorf("%v: %+v", err, p)
	}
	for _, part := range []struct{ name, want string }{
		{"policy", "\"ip:address/48\""},
		{"nginx", "set_real_ip_from 10.0.0.0/8;\nset_real_ip_from fd00::/8;\nreal_ip_header "},
		{"nginx", "map $binary_remote_addr $client {"},
		{"nginx", `"~(?s)^(?<prefix>.{6}).{10}$" $prefix;`},
	} {
		if !strings.Contains(texts[part.name], part.want) {
			t.Errorf("no %s in\n%s", part.want, texts[part.name])
		}
	}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skipf("nginx did not check its configuration: %v", err)
	}
	dir := t.TempDir()
	conf := fmt.Sprintf("pid %s;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n%s\n}\n",
		filepath.Join(dir, "pid"), texts["nginx"])
	file := testkit.File(t, "nginx.conf", conf)
	out, err := exec.Command(nginx, "-t", "-q", "-p", dir, "-c", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s\n%s", err, out, conf)
	}
}

// Paths that differ in a slash have limits of their own, with different names. The limit of a
// prefix counts the requests to all paths below it together.
func TestNamesOfLimitsAreDistinct(t *testing.T) {
	rep := Report{Suggestion: &Suggestion{}, Limit: &Limit{Rate: mustRate(t, "5"), Burst: 9},
		options: &Options{Keys: []string{"ip"}, IPv6Prefix: 64}}
	s := rep.Suggestion
	for _, path := range []string{"/", "/api", "/api/", "/a.pi/", "/b", "/b-7", "/b/", "/API"} {
		l := &Limit{Rate: mustRate(t, "1"), Burst: 2}
		s.Paths = append(s.Paths, PathLimit{Path: path, Limit: l, Stricter: true})
	}
	s.Paths = append(s.Paths, PathLimit{Path: "/lax", Limit: rep.Limit})
	policy, err := policyOf(s.plan(rep.Limit), rep.options)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cli.ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, set := range p.Sets {
		got += fmt.Sprintf("%s %s%s, ", set.Rules[0].Name, set.Selector.PathExact,
			set.Selector.PathPrefix)
	}
	if want := "suggested , root /, api /api, api-3 /api/, a-pi /a.pi/, " +
		"b /b, b-7 /b-7, b-7-7 /b/, API-8 /API, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	text, err := nginxConfig(s.plan(rep.Limit), rep.options, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"map $uri $client_api_3 { # a request without a value is not counted\n    \"~^/api/\" $client;\n",
		"    \"~^/b-7$\" $client;\n", "    \"~^/a\\.pi/\" $client;\n",
		"limit_req_zone $client_api_3 zone=api-3:6m rate=1r/s;\n",
		"limit_req zone=suggested burst=8 nodelay;\nlimit_req zone=root burst=1 nodelay;\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in\n%s", part, text)
		}
	}
}

func TestNothingToExport(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		prefix    int
		rate      string
		want      string
	}{
		{"policy", "path", 60, "1", "a policy has no key for path"},
		{"nginx", "path", 60, "1", "it needs --key ip"},
		{"nginx", "ip", 60, "1", "it needs whole bytes in --ipv6-prefix"},
		{"nginx", "ip", 56, "7/m", "it needs whole requests a second or a minute, and not 7/m"},
	} {
		o := suggestOptions(t, "5%", tt.rate)
		o.Keys, o.Export, o.IPv6Prefix = []string{tt.key}, &tt.name, tt.prefix
		log := aDay(strings.Repeat(line("192.0.2.1", 1, 1), minRequests))
		rep := replay(t, o, input("a.log", log))
		var out strings.Builder
		err := rep.printExport(&out)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || out.Len() > 0 ||
			!strings.HasSuffix(err.Error(), "so there is nothing for --export "+tt.name) {
			t.Errorf("%s of %s: no %q in %v, and %q", tt.name, tt.key, tt.want, err, &out)
		}
	}
}

// nginx has a rate exactly, or not at all.
func TestRatesOfNginx(t *testing.T) {
	for rate, want := range map[string]string{
		"5": "5r/s", "1000000000": "1000000000r/s", "300/m": "5r/s", "2.5": "150r/m", "90/h": "",
		"0.03": "", "0.05": "3r/m", "7/m": "", "1/h": "", "33.3": "1998r/m", "0.0001": "", "1/3s": "",
	} {
		if got := nginxRate(mustRate(t, rate)); got != want {
			t.Errorf("%s: %q, want %q", rate, got, want)
		}
	}
	rates, err := ratesOf(defaultRates)
	for _, rate := range rates {
		if err != nil || nginxRate(rate) == "" {
			t.Errorf("nginx does not have the default rate %s, %v", rate, err)
		}
	}
}
