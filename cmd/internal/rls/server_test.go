package rls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// The health service reports the service while it serves, also to streams, and a stream does not
// delay the end.
func TestHealth(t *testing.T) {
	r := run(t, yearly("1"), "--shutdown-delay=1s")
	client := grpc_health_v1.NewHealthClient(dial(t, r.address))
	for _, name := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"} {
		answer, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, answer, err)
		}
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
			go r.stop()
		}
	}
	if got := strings.Join(seen, " "); got != "SERVING NOT_SERVING" {
		t.Error(got)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	for len(r.log.Lines) > 0 {
		if line := <-r.log.Lines; strings.Contains(line, "cut off") {
			t.Error(line)
		}
	}
}

func TestReflection(t *testing.T) {
	r := run(t, yearly("1"))
	stream, err := grpc_reflection_v1.NewServerReflectionClient(dial(t, r.address)).
		ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || !strings.Contains(answer.String(), "ratelimit.v3.RateLimitService") {
		t.Error(answer, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
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
	service := New(Config{})
	l, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(l, service, newMetrics(service, nil), connectionFlags{MaxStreams: 1}, nil,
		slog.New(slog.DiscardHandler))
	s.Start(make(chan error, 1))
	stream, err := grpc_reflection_v1.NewServerReflectionClient(dial(t, l.Addr().String())).
		ServerReflectionInfo(t.Context())
	if err == nil {
		err = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
		})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Stop(0, 0) == nil {
		t.Error("nothing was cut off")
	}
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key, _, _ = (&authority{}).sign(t, "authority")
	return a
}

// sign returns a certificate for a name, its key, and both in PEM. Without a key, a certificate
// signs itself.
func (a *authority) sign(
	t *testing.T, name string,
) (cert *x509.Certificate, key *ecdsa.PrivateKey, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: a.key == nil, BasicConstraintsValid: true,
	}
	parent, signer := a.cert, a.key
	if signer == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ = x509.ParseCertificate(der)
	secret, _ := x509.MarshalPKCS8PrivateKey(key)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
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
	servers, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	install := func(host string, trusted *authority) {
		t.Helper()
		_, _, cert, key := servers.sign(t, host)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.cert.Raw})
		for file, text := range map[string][]byte{"cert": cert, "key": key, "ca": ca} {
			if err := os.WriteFile(name(file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	install("one.test", clients)
	r := run(t, yearly("100"), "--tls-cert", name("cert"), "--tls-key", name("key"),
		"--tls-client-ca", name("ca"))
	try := func(host string, from *authority) codes.Code {
		t.Helper()
		c := &tls.Config{ServerName: host, RootCAs: x509.NewCertPool()}
		c.RootCAs.AddCert(servers.cert)
		if from != nil {
			_, _, cert, key := from.sign(t, "client")
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
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
	r.log.Until(t, "certificate reloaded")
	check("the old name", try("one.test", others), no)
	check("the new authority", try("two.test", others), ok)
	check("the old authority", try("two.test", clients), no)
	if err := os.WriteFile(name("ca"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	r.log.Until(t, "certificate rejected")
	check("after a file with an error", try("two.test", others), ok)
}
