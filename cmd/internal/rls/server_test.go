package rls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// The health service reports the service while it serves. No stream that is open delays the end.
func TestHealth(t *testing.T) {
	r := run(t, yearly("1"), "--shutdown-delay=1s")
	conn := dial(t, r.address)
	client := grpc_health_v1.NewHealthClient(conn)
	for _, name := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"} {
		answer, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, answer, err)
		}
	}
	_, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for {
		answer, err := watch.Recv()
		if err != nil {
			break
		}
		if seen = append(seen, answer.Status.String()); len(seen) == 1 {
			go r.Stop()
		}
	}
	if got := strings.Join(seen, " "); got != "SERVING NOT_SERVING" {
		t.Error(got)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	for len(r.Log.Lines) > 0 {
		if line := <-r.Log.Lines; strings.Contains(line, "cut off") {
			t.Error(line)
		}
	}
}

// A call may have as much as clients send to Envoy: all of their header in each descriptor, and in
// the header of the call what a tracer passes on. An error would let the request pass.
func TestLargeRequest(t *testing.T) {
	r := run(t, yearly("1"))
	large := strings.Repeat("x", 60<<10)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "tracestate", large)
	all := append(slices.Repeat([]string{"other=" + large}, maxDescriptors-1), "k=v")
	for _, want := range []ratelimit.RateLimitResponse_Code{
		ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT,
	} {
		answer, err := ratelimit.NewRateLimitServiceClient(dial(t, r.address)).
			ShouldRateLimit(ctx, request(0, all...))
		if err != nil || answer.GetOverallCode() != want {
			t.Errorf("%v, %v, want %v", answer.GetOverallCode(), err, want)
		}
	}
}

// A panic of a handler is an error of its request, and one line of the log.
func TestPanic(t *testing.T) {
	log := testkit.NewTranscript()
	_, err := recoverPanics(log.Logger())(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "m"},
		func(context.Context, any) (any, error) { panic("p") })
	if status.Code(err) != codes.Internal {
		t.Error(err)
	}
	if line := log.Until(t, "msg=panic"); !strings.Contains(line, "TestPanic") {
		t.Error(line)
	}
}

// A request that does not end is cut off after the timeout.
func TestStopCutsOff(t *testing.T) {
	began, cut := make(chan struct{}), make(chan struct{})
	service, _ := newService(t, limit("a", "unit: day, requests_per_unit: 0"), func(c *Config) {
		c.Refused = func(Refusal) { close(began); <-cut }
	})
	l, err := daemon.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(l, service, newMetrics(service, nil), connectionFlags{MaxStreams: 1}, nil,
		slog.New(slog.DiscardHandler))
	s.Start(make(chan error, 1))
	client := ratelimit.NewRateLimitServiceClient(dial(t, l.Addr().String()))
	go func() {
		_, _ = client.ShouldRateLimit(t.Context(), request(0, "a="))
		close(cut)
	}()
	<-began
	if s.Stop(0, 0) == nil {
		t.Error("nothing was cut off")
	}
}

// hangUp sends SIGHUP to this process.
func hangUp(t *testing.T) {
	t.Helper()
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// With a client authority, a client needs a certificate of it. All files are read again when they
// change, and on SIGHUP.
func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	authority := func(name string) *testkit.Certificate { return testkit.NewCertificate(name, nil) }
	servers, clients, others := authority("servers"), authority("clients"), authority("others")
	install := func(host string, trusted *testkit.Certificate) {
		t.Helper()
		c := testkit.NewCertificate(host, servers)
		for file, text := range map[string]string{"cert": c.PEM, "key": c.Key, "ca": trusted.PEM} {
			if err := os.WriteFile(name(file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	install("one.test", clients)
	r := run(t, yearly("100"), "--tls-cert", name("cert"), "--tls-key", name("key"),
		"--tls-client-ca", name("ca"))
	try := func(host string, from *testkit.Certificate) codes.Code {
		t.Helper()
		c := &tls.Config{ServerName: host, RootCAs: x509.NewCertPool()}
		c.RootCAs.AddCert(servers.Certificate)
		if from != nil {
			c.Certificates = []tls.Certificate{testkit.NewCertificate("client", from).Pair()}
		}
		conn := dial(t, r.address, grpc.WithTransportCredentials(credentials.NewTLS(c)))
		_, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(),
			request(0, "k=v"))
		return status.Code(err)
	}
	const ok, no = codes.OK, codes.Unavailable
	check := func(what string, got, want codes.Code) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("a client", try("one.test", clients), ok)
	check("no certificate", try("one.test", nil), no)
	check("another authority", try("one.test", others), no)
	install("two.test", others)
	r.Log.Until(t, "certificate reloaded")
	check("the old name", try("one.test", others), no)
	check("the new authority", try("two.test", others), ok)
	check("the old authority", try("two.test", clients), no)
	if err := os.WriteFile(name("ca"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	r.Log.Until(t, "certificate rejected")
	check("after a file with an error", try("two.test", others), ok)
}
