package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	xds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc/credentials"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit/xdstest"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// These tests have tb-rls behind Envoy, with the examples of docs/rls.md and docs/kubernetes.md as
// they stand there.

// limits returns the flag with the limits of docs/rls.md, which pay nothing back in the test.
func limits(t *testing.T) string {
	t.Helper()
	return "--config=" + testkit.File(t, "limits.yaml", replace(t,
		block(t, "rls.md", "domain: edge"), "unit: minute", "unit: year", "unit: hour", "unit: year"))
}

func expect(t *testing.T, what string, got map[int]int, want string) {
	t.Helper()
	if text := strings.TrimPrefix(fmt.Sprint(got), "map"); text != want {
		t.Errorf("%s: %s, want %s", what, text, want)
	}
}

// field returns a change of requests that sets a field. N stands for the number of the request.
func field(name, value string) func(*http.Request, int) {
	return func(r *http.Request, i int) {
		r.Header.Set(name, strings.ReplaceAll(value, "N", fmt.Sprint(i)))
	}
}

// ask sends a request, and returns its response.
func (f *front) ask(t *testing.T) *http.Response {
	t.Helper()
	r, err := http.Get(f.url)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r
}

// metric returns a counter of tb-rls.
func metric(t *testing.T, p *process, name string) int {
	t.Helper()
	_, text := raw(t, p.admin, "GET /metrics HTTP/1.1\nHost: localhost\nConnection: close\n\n")
	return gauge(text, name)
}

// A client is granted its burst, whatever addresses it writes. Behind a load balancer the last
// address counts, which the load balancer has appended.
func TestEnvoyCountsClients(t *testing.T) {
	t.Parallel()
	f := newEdge(t, nil, []*process{startRLS(t, limits(t))}, patient...).start(t)
	expect(t, "a burst", f.send(t, 60, nil), "[200:20 429:40]")
	expect(t, "forged addresses", f.send(t, 60, field("X-Forwarded-For", "198.51.100.N")), "[429:60]")
	refusal := f.ask(t).Header
	for name, n := range map[string]int{"Retry-After": 1, "Ratelimit": 1, "X-Ratelimit-Limit": 0} {
		if len(refusal.Values(name)) != n {
			t.Errorf("a refusal has %v, want %d fields %s", refusal, n, name)
		}
	}
	f.checkNoError(t)

	e := newEdge(t, nil, []*process{startRLS(t, limits(t))}, patient...)
	e.manager["xff_num_trusted_hops"] = 1
	f = e.start(t)
	for _, c := range []struct{ addresses, want string }{
		{"198.51.100.N, 203.0.113.1", "[200:20 429:40]"},
		{"198.51.100.N, 203.0.113.2", "[200:20 429:40]"},
		{"203.0.113.N, 192.0.2.7", "[429:60]"},
	} {
		expect(t, c.addresses, f.send(t, 60, field("X-Forwarded-For", c.addresses)), c.want)
	}
}

// The route asks with 0 hits before a request, and reports what the response says.
func TestEnvoyReportsCosts(t *testing.T) {
	t.Parallel()
	p := startRLS(t, limits(t))
	e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tokens", "40000")
	}, []*process{p}, patient...)
	e.add(t, "http_filters")
	e.add(t, "routes")
	f := e.start(t)
	for i := range 5 {
		want, reported := "[200:1]", 40000*min(i+1, 3)
		if i >= 3 {
			want = "[429:1]"
		}
		expect(t, fmt.Sprint("request ", i), f.send(t, 1, nil), want)
		await(t, "the report", func() bool {
			return reported == metric(t, p,
				`tb_rls_hits_total{decision="total",domain="edge",rule="model_tokens"}`)
		})
	}
	e = newEdge(t, nil, []*process{startRLS(t, limits(t))}, patient...)
	e.add(t, "routes", "%DYNAMIC_METADATA(cost:tokens)%", "%REQ(x-cost)%",
		"            apply_on_stream_done: true\n", "")
	f = e.start(t)
	expect(t, "costs of requests", f.send(t, 20, field("X-Cost", "10000")), "[200:10 429:10]")
	f.checkNoError(t)
}

// A connection is a hit.
func TestEnvoyCountsConnections(t *testing.T) {
	t.Parallel()
	e := newEdge(t, nil, []*process{startRLS(t, limits(t))}, patient...)
	delete(e.host, "rate_limits")
	e.add(t, "filters", patient[:2]...)
	got := e.start(t).send(t, 30, func(r *http.Request, _ int) { r.Close = true })
	expect(t, "connections", got, "[0:10 200:20]")
}

// A trial changes no response, and counts what would be refused. Envoy's own lets the fields of a
// refusal through.
func TestEnvoyTrial(t *testing.T) {
	t.Parallel()
	p := startRLS(t, limits(t), "--shadow-mode")
	f := newEdge(t, nil, []*process{p}, patient...).start(t)
	expect(t, "in shadow mode", f.send(t, 60, nil), "[200:60]")
	if r := f.ask(t); r.Header.Get("Retry-After") != "" ||
		metric(t, p, `tb_rls_requests_total{outcome="shadow"}`) != 41 {
		t.Errorf("%v", r.Header)
	}
	e := newEdge(t, nil, []*process{startRLS(t, limits(t))}, patient...)
	first(e.manager["http_filters"])["typed_config"].(tree)["filter_enforced"] = tree{
		"default_value": tree{"numerator": 0},
	}
	f = e.start(t)
	expect(t, "not enforced", f.send(t, 60, nil), "[200:60]")
	if f.ask(t).Header.Get("Retry-After") == "" {
		t.Error("filter_enforced is a trial, too: say so in docs/rls.md")
	}
}

// While the limits change, and while one of two services stops, no request is without a decision.
func TestEnvoyLosesNothing(t *testing.T) {
	t.Parallel()
	flag := limits(t)
	services := []*process{
		startRLS(t, flag, "--shutdown-delay=5s"), startRLS(t, flag, "--shutdown-delay=5s"),
	}
	f := newEdge(t, nil, services, patient...).start(t)
	var answers, grants atomic.Int64
	var stopped atomic.Bool
	var load sync.WaitGroup
	for range 2 {
		load.Go(func() {
			for !stopped.Load() {
				counts := f.send(t, 20, nil)
				answers.Add(int64(counts[http.StatusOK] + counts[http.StatusTooManyRequests]))
				grants.Add(int64(counts[http.StatusOK]))
			}
		})
	}
	more := func() {
		t.Helper()
		before := answers.Load()
		await(t, "answers", func() bool { return answers.Load() > before+200 })
	}
	more()
	file := strings.TrimPrefix(flag, "--config=")
	text, err := os.ReadFile(file)
	if err == nil { // by a rename, because the services may be reading the file
		next := testkit.File(t, "next", replace(t, string(text), "unit: 100", "unit: 200"))
		err = os.Rename(next, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range services {
		p.awaitLog(t, "configuration reloaded")
	}
	more()
	services[0].stop(t)
	more()
	stopped.Store(true)
	load.Wait()
	f.checkNoError(t)
	if n := grants.Load(); n != 40 {
		t.Errorf("%d granted, want a burst of 20 of each service", n)
	}
}

// The delay of a stop exceeds the intervals of the health check in the example by a second.
func TestShutdownDelayOfRLS(t *testing.T) {
	durations := func(name, pattern string) (all []time.Duration) {
		text, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			d, err := time.ParseDuration(m[1])
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		return all
	}
	least := slices.Max(durations("docs/rls.md", `interval: (\w+)`)) + time.Second
	for name, pattern := range map[string]string{
		"docs/rls.md": "`--shutdown-delay` \\| `(\\w+)`", "packaging/kubernetes/rls.yaml": `-delay=(\w+)`,
	} {
		if d := durations(name, pattern); len(d) != 1 || d[0] < least {
			t.Errorf("%s has %v, want %v", name, d, least)
		}
	}
}

// Requests do not wait for a service that hangs, once its health check has failed.
func TestEnvoyHungService(t *testing.T) {
	t.Parallel()
	p := startRLS(t, limits(t))
	f := newEdge(t, nil, []*process{p}).start(t)
	p.signal(t, syscall.SIGSTOP)
	await(t, "requests that do not wait", func() bool {
		expect(t, "without an answer", f.send(t, 20, nil), "[200:20]")
		return f.stat("cluster.limits.upstream_cx_none_healthy") > 20
	})
}

// tb-rls has the limits of Envoy Gateway, with the flags of docs/kubernetes.md. Both sides of each
// connection have certificates.
func TestEnvoyGateway(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), testkit.NewCertificate("authority", nil)
	for name, host := range map[string]string{"tls": "limits.internal", "envoy": "envoy"} {
		c := testkit.NewCertificate(host, authority)
		for end, text := range map[string]string{".crt": c.PEM, ".key": c.Key} {
			if err := os.WriteFile(filepath.Join(dir, name+end), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte(authority.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate)
	control := xdstest.NewControl(t, credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{testkit.NewCertificate("127.0.0.1", authority).Pair()},
		ClientCAs:    pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	manifest := replace(t, block(t, "kubernetes.md", "apiVersion: gateway.envoyproxy.io/v1alpha1"),
		"=:8081", "=127.0.0.1:0", "=:8080", "=127.0.0.1:0", "/certs", dir,
		"envoy-gateway:18001", control.Address, "$(REDIS_URL)", redistest.Start(t).Addr)
	var flags []string
	for _, m := range regexp.MustCompile(`- (--\S+)\n`).FindAllStringSubmatch(manifest, -1) {
		flags = append(flags, m[1])
	}
	p := startRLS(t, flags...)
	if asked := <-control.Asked; asked.GetNode().GetId() != "envoy-ratelimit" {
		t.Error(asked)
	}
	control.Send(t, "1", &xds.RateLimitConfig{
		Domain: "edge", Descriptors: []*xds.RateLimitDescriptor{{
			Key:       "remote_address",
			RateLimit: &xds.RateLimitPolicy{Unit: xds.RateLimitUnit_YEAR, RequestsPerUnit: 20},
		}},
	})
	e := newEdge(t, nil, []*process{p}, patient...)
	e.add(t, "transport_socket", "filename: ", "filename: "+dir+"/")
	f := e.start(t)
	expect(t, "by TLS", f.send(t, 60, nil), "[200:20 429:40]")
	f.checkNoError(t)
	delete(e.limits["transport_socket"].(tree)["typed_config"].(tree)["common_tls_context"].(tree),
		"tls_certificates")
	f = e.start(t)
	expect(t, "without a certificate", f.send(t, 5, nil), "[200:5]")
	if n := f.stat("ratelimit.error"); n != 5 {
		t.Errorf("without a certificate, %d of 5 requests had no decision", n)
	}
}

// The patches of Istio are at their places.
func TestEnvoyWithPatchesOfIstio(t *testing.T) {
	t.Parallel()
	patches := parse[struct {
		Spec struct {
			ConfigPatches []struct{ Patch struct{ Value tree } } `yaml:"configPatches"`
		}
	}](t, replace(t, block(t, "kubernetes.md", "apiVersion: networking.istio.io"), patient[:2]...)).
		Spec.ConfigPatches
	p := startRLS(t, "--config="+testkit.File(t, "limits.yaml", "domain: example\ndescriptors:\n"+
		"- {key: remote_address, rate_limit: {unit: year, requests_per_unit: 10}}\n"))
	e := newEdge(t, nil, []*process{p}, patient...)
	e.limits["name"] = "outbound|8081||tb-rls.default.svc.cluster.local"
	e.manager["http_filters"].([]any)[0] = patches[0].Patch.Value
	e.host["rate_limits"] = patches[1].Patch.Value["rate_limits"]
	f := e.start(t)
	expect(t, "a burst", f.send(t, 60, field("X-Forwarded-For", "198.51.100.N")), "[200:10 429:50]")
	f.checkNoError(t)
}
