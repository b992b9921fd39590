package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit/xdstest"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// These tests have tb-rls behind Envoy, with the examples of packaging/envoy as they stand there. A
// request without a decision passes, so that the counts show it.

// limits returns the flag with the limits of docs/rls.md, which pay nothing back in the test.
func limits(t *testing.T) string {
	t.Helper()
	return "--config=" + testkit.File(t, "limits.yaml", block(t, "docs/rls.md", "domain: edge",
		"unit: minute", "unit: year", "unit: hour", "unit: year"))
}

func expect(t *testing.T, what string, got map[int]int, want string) {
	t.Helper()
	if text := strings.TrimPrefix(fmt.Sprint(got), "map"); text != want {
		t.Errorf("%s: %s, want %s", what, text, want)
	}
}

func answer(http.ResponseWriter, *http.Request) {}

// A client is granted its burst, whatever addresses it writes. In shadow mode all requests pass.
// Behind a load balancer the last address counts, which the load balancer has appended.
func TestEnvoyCountsClients(t *testing.T) {
	t.Parallel()
	f := newEdge(t, answer, []*process{startRLS(t, limits(t))}, patient...).start(t)
	expect(t, "a burst", f.send(t, 60, "", ""), "[200:20 429:40]")
	expect(t, "forged addresses", f.send(t, 60, "X-Forwarded-For", "198.51.100.N"), "[429:60]")
	if r, err := http.Head(f.url); err != nil || r.Header.Get("Retry-After") == "" ||
		r.Header.Get("RateLimit") == "" || r.Header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("a refusal is %v, %v", r, err)
	}
	p := startRLS(t, limits(t), "--shadow-mode")
	f = newEdge(t, answer, []*process{p}, patient...).start(t)
	expect(t, "in shadow mode", f.send(t, 60, "", ""), "[200:60]")
	if n := p.metric(t, `tb_rls_requests_total{outcome="shadow"}`); n != 40 {
		t.Errorf("%v requests would be refused, want 40", n)
	}
	e := newEdge(t, answer, []*process{startRLS(t, limits(t))}, patient...)
	e.manager["xff_num_trusted_hops"] = 1
	f = e.start(t)
	for _, c := range []struct{ addresses, want string }{
		{"198.51.100.N, 203.0.113.1", "[200:20 429:40]"},
		{"198.51.100.N, 203.0.113.2", "[200:20 429:40]"},
		{"203.0.113.N, 192.0.2.7", "[429:60]"}, // the file refuses it
	} {
		expect(t, c.addresses, f.send(t, 60, "X-Forwarded-For", c.addresses), c.want)
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
	for i, want := range []string{"[200:1]", "[200:1]", "[200:1]", "[429:1]", "[429:1]"} {
		expect(t, fmt.Sprint("request ", i), f.send(t, 1, "", ""), want)
		await(t, "the report", func() bool {
			const name = `tb_rls_hits_total{decision="total",domain="edge",rule="model_tokens"}`
			return p.metric(t, name) == float64(40000*min(i+1, 3))
		})
	}
	e = newEdge(t, answer, []*process{startRLS(t, limits(t))}, patient...)
	e.add(t, "routes", "%DYNAMIC_METADATA(cost:tokens)%", "%REQ(x-cost)%",
		"            apply_on_stream_done: true\n", "")
	f = e.start(t)
	for _, cost := range []string{"0", "none", ""} { // takes nothing, as the example says
		expect(t, "cost "+cost, f.send(t, 20, "X-Cost", cost), "[200:20]")
	}
	expect(t, "costs of requests", f.send(t, 20, "X-Cost", "10000"), "[200:10 429:10]")
}

// A connection is a hit.
func TestEnvoyCountsConnections(t *testing.T) {
	t.Parallel()
	e := newEdge(t, answer, []*process{startRLS(t, limits(t))}, patient...)
	delete(e.host, "rate_limits")
	e.add(t, "filters", patient[:2]...)
	expect(t, "connections", e.start(t).send(t, 30, "Connection", "close"), "[0:10 200:20]")
}

// While the limits change, and while one of two services stops, no request is without a decision.
func TestEnvoyLosesNothing(t *testing.T) {
	t.Parallel()
	flag := limits(t)
	services := []*process{startRLS(t, flag, "--shutdown-delay=5s"), startRLS(t, flag)}
	f := newEdge(t, answer, services, patient...).start(t)
	var answers, grants atomic.Int64
	var stopped atomic.Bool
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for !stopped.Load() {
				counts := f.send(t, 20, "", "")
				answers.Add(20)
				grants.Add(int64(counts[http.StatusOK]))
			}
		})
	}
	more := func() {
		t.Helper()
		before := answers.Load()
		await(t, "answers", func() bool { return answers.Load() > before+500 })
	}
	more()
	name := strings.TrimPrefix(flag, "--config=")
	next := block(t, "docs/rls.md", "domain: edge", "per_unit: 100,", "per_unit: 1,", "minute", "year")
	if err := os.Rename(testkit.File(t, "next", next), name); err != nil {
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
	errors, n := f.stat("cluster.upstream.ratelimit.error"), grants.Load()
	if errors != 0 || n != 40 {
		t.Errorf("%d errors, and %d granted, want a burst of 20 of each service", errors, n)
	}
}

// The delay of a stop exceeds the intervals of the health check in the example by a second.
func TestShutdownDelayOfRLS(t *testing.T) {
	manual := read(t, "docs/rls.md") + read(t, "packaging/envoy/envoy.yaml")
	for _, text := range []string{" interval: 1s,", "_interval: 1s,", "`--shutdown-delay` | `2s`"} {
		if !strings.Contains(manual, text) {
			t.Errorf("neither docs/rls.md nor the example has %q: change all of them", text)
		}
	}
}

// Requests do not wait for a service that hangs, once its health check has failed.
func TestEnvoyHungService(t *testing.T) {
	t.Parallel()
	p := startRLS(t, limits(t))
	f := newEdge(t, answer, []*process{p}).start(t)
	p.signal(t, syscall.SIGSTOP)
	await(t, "requests that do not wait", func() bool {
		f.send(t, 20, "", "")
		return f.stat("cluster.limits.upstream_cx_none_healthy") > 20
	})
	expect(t, "without an answer", f.send(t, 20, "", ""), "[200:20]")
}

// flagsOf returns the arguments of a manifest, in which pairs are replaced.
func flagsOf(t *testing.T, manifest string, pairs ...string) (flags []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`\n +- (--\S+)`).FindAllStringSubmatch(
		replace(t, manifest, pairs...), -1) {
		flags = append(flags, m[1])
	}
	return flags
}

// tb-rls has the limits of Envoy Gateway, with the flags of docs/kubernetes.md. Both sides of each
// connection have certificates.
func TestEnvoyGateway(t *testing.T) {
	t.Parallel()
	authority := testkit.NewCertificate("authority", nil)
	own := testkit.NewCertificate("limits.internal", authority)
	ca, cert := testkit.File(t, "ca.crt", authority.PEM), testkit.File(t, "tls.crt", own.PEM)
	key := testkit.File(t, "tls.key", own.Key)
	clients := x509.NewCertPool()
	clients.AddCert(authority.Certificate)
	control := xdstest.NewControl(t, credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{testkit.NewCertificate("127.0.0.1", authority).Pair()},
		ClientCAs:    clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	p := startRLS(t, flagsOf(t, example(t, "gateway.yaml"),
		"=:8081", "=127.0.0.1:0", "=:8080", "=127.0.0.1:0", "/certs/tls.crt", cert,
		"/certs/tls.key", key, "/certs/ca.crt", ca,
		"envoy-gateway:18001", control.Address, "$(REDIS_URL)", redistest.Start(t).Addr)...)
	if asked := <-control.Asked; asked.GetNode().GetId() != "envoy-ratelimit" {
		t.Error(asked)
	}
	control.Send(t, "1", &xds.RateLimitConfig{
		Domain: "edge", Descriptors: []*xds.RateLimitDescriptor{{
			Key:       "remote_address",
			RateLimit: &xds.RateLimitPolicy{Unit: xds.RateLimitUnit_YEAR, RequestsPerUnit: 20},
		}},
	})
	e := newEdge(t, answer, []*process{p}, patient...)
	e.add(t, "transport_socket", "envoy.crt", cert, "envoy.key", key,
		"trusted_ca: {filename: ca.crt}", "trusted_ca: {filename: "+ca+"}")
	expect(t, "by TLS", e.start(t).send(t, 60, "", ""), "[200:20 429:40]")
}

// The patches of Istio are at their places.
func TestEnvoyWithPatchesOfIstio(t *testing.T) {
	t.Parallel()
	patches := parse[struct {
		Spec struct {
			ConfigPatches []struct{ Patch struct{ Value tree } } `yaml:"configPatches"`
		}
	}](t, example(t, "istio.yaml", patient[:2]...)).
		Spec.ConfigPatches
	p := startRLS(t, "--config="+testkit.File(t, "limits.yaml", "domain: example\ndescriptors:\n"+
		"- {key: remote_address, rate_limit: {unit: year, requests_per_unit: 10}}\n"))
	e := newEdge(t, answer, []*process{p}, patient...)
	e.limits["name"] = "outbound|8081||tb-rls.default.svc.cluster.local"
	e.manager["http_filters"].([]any)[0] = patches[0].Patch.Value
	e.host["rate_limits"] = patches[1].Patch.Value["rate_limits"]
	expect(t, "a burst", e.start(t).send(t, 60, "X-Forwarded-For", "203.0.113.N"), "[200:10 429:50]")
}

const recordings = "cmd/internal/hostile/testdata/ai-gateway/"

// quotas starts tb-rls with the arguments of the manifest for Envoy AI Gateway, and with limits of
// a recording.
func quotas(t *testing.T, name string) *process {
	t.Helper()
	control := xdstest.NewControl(t, insecure.NewCredentials())
	p := startRLS(t, flagsOf(t, read(t, "packaging/kubernetes/ai-gateway/rls.yaml"),
		"=:8081", "=127.0.0.1:0", "=:6070", "=127.0.0.1:0",
		"ai-gateway-controller.envoy-ai-gateway-system:18002", control.Address)...)
	if asked := <-control.Asked; asked.GetNode().GetId() != "envoy-ai-gateway-ratelimit" {
		t.Error(asked)
	}
	var recorded discovery.DiscoveryResponse
	text := read(t, recordings+name+"-limits.json")
	if err := protojson.Unmarshal([]byte(text), &recorded); err != nil {
		t.Fatal(err)
	}
	control.Answers <- &recorded
	if asked := <-control.Asked; asked.GetErrorDetail() != nil {
		t.Fatal(asked.GetErrorDetail())
	}
	return p
}

// A quota of Envoy AI Gateway counts the tokens of responses. A request passes if one of its quotas
// has a token. Another filter makes the metadata that Envoy AI Gateway makes.
func TestEnvoyAIGateway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy, field, value string
		passed               int // of 700 tokens each
	}{
		{"tokens", "X-None", "", 2}, // a quota of 1000
		{"clients", "X-None", "", 2},
		{"clients", "X-Plan", "paid", 3},  // of 2000
		{"clients", "X-Team", "blue7", 5}, // of 3000
	} {
		p := quotas(t, c.policy)
		e := newEdge(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Tokens", "700")
		}, []*process{p}, patient...)
		e.manager["http_filters"].([]any)[0] = parse[tree](t, read(t, recordings+"filter.json"))
		const rule = "\n        - {header: x-n, on_header_missing: {metadata_namespace: cost, key: "
		e.add(t, "http_filters", "      response_rules:", "      request_rules:"+
			rule+"ai_service_backend_name, value: default/openai}}"+
			rule+"model_name_override, value: gpt-4.1}}\n      response_rules:",
			"key: tokens", "key: quota_cost", "namespace: cost", "namespace: io.envoy.ai_gateway")
		e.limits["name"] = "ai_gateway_ratelimit_cluster"
		maps.Copy(first(e.host["routes"]), parse[tree](t, read(t, recordings+c.policy+"-route.json")))
		f := e.start(t)
		passed, calls := 0, 0
		for range c.passed + 2 {
			n := f.send(t, 1, c.field, c.value)[http.StatusOK]
			passed, calls = passed+n, calls+1+n
			await(t, "the report", func() bool {
				return float64(calls) == p.metric(t, `tb_rls_requests_total{outcome="ok"}`)+
					p.metric(t, `tb_rls_requests_total{outcome="over_limit"}`)
			})
		}
		if passed != c.passed {
			t.Errorf("%+v: %d passed", c, passed)
		}
	}
}
