package rls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit/xdstest"
)

// of returns a domain with a limit for each value of k.
func of(version string, limit *xds.RateLimitPolicy) *xds.RateLimitConfig {
	return &xds.RateLimitConfig{
		Name: "of " + version, Domain: "d",
		Descriptors: []*xds.RateLimitDescriptor{{Key: "k", RateLimit: limit}},
	}
}

func yearlyPolicy(n uint32) *xds.RateLimitPolicy {
	return &xds.RateLimitPolicy{Unit: xds.RateLimitUnit_YEAR, RequestsPerUnit: n}
}

// The limits come from the second server, because the first does not answer. One that is not
// accepted changes nothing, and the server learns why.
func TestXDS(t *testing.T) {
	c := xdstest.NewControl(t, insecure.NewCredentials())
	none, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	none.Close()
	r := run(t, "", "--xds", none.Addr().String()+","+c.Address, "--xds-node=me",
		"--upstream-metrics")
	conn := dial(t, r.address)
	health := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		answer, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(),
			&grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
		if err != nil || answer.GetStatus() != want {
			t.Errorf("%v, %v, want %v", answer, err, want)
		}
	}
	health(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	if got := query(t, conn); !strings.Contains(got, "no configuration yet") {
		t.Errorf("before the first configuration: %s", got)
	}
	metrics := "\n" + get(t, r.admin+"/metrics")
	for _, want := range []string{
		`tb_rls_errors_total{reason="no_configuration"} 1`, `tb_rls_errors_total{reason="redis"} 0`,
		"tb_rls_config_last_reload_successful 0", "ratelimit_service_config_load_success 0",
		`ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("before the first configuration: no %s in\n%s", want, metrics)
		}
	}
	first := <-c.Asked
	if first.GetNode().GetId() != "me" || first.GetTypeUrl() != configType {
		t.Error(first)
	}
	got := c.Send(t, "1", of("1", yearlyPolicy(1)))
	if got.GetVersionInfo() != "1" || got.GetErrorDetail() != nil {
		t.Error(got)
	}
	health(grpc_health_v1.HealthCheckResponse_SERVING)
	expect(t, "the first", []string{query(t, conn), query(t, conn)}, "OK OK:0", "OVER OVER:0")
	got = c.Send(t, "2", of("2", yearlyPolicy(1)), of("2", &xds.RateLimitPolicy{RequestsPerUnit: 1}))
	if got.GetVersionInfo() != "1" || !strings.Contains(got.GetErrorDetail().GetMessage(), "of 2:") {
		t.Error(got)
	}
	expect(t, "after an error", []string{query(t, conn)}, "OVER OVER:0")
	if got := c.Send(t, "3", of("3", yearlyPolicy(3))); got.GetVersionInfo() != "3" {
		t.Error(got)
	}
	expect(t, "the same bucket", []string{query(t, conn)}, "OVER OVER:0")
	c.Send(t, "4")
	expect(t, "no limits", []string{query(t, conn)}, "OK OK:-")
	close(c.Answers)
	r.Log.Until(t, "the configuration stays as it is")
	expect(t, "the server is gone", []string{query(t, conn)}, "OK OK:-")
}

// stubborn is a server that sends a configuration without a domain again at once when it learns
// that it was rejected, for an hour or a thousand times.
type stubborn struct {
	began    time.Time
	rejected []time.Duration // when it learned of it
}

func (s *stubborn) Send(r *discovery.DiscoveryRequest) error {
	if r.GetErrorDetail() != nil {
		s.rejected = append(s.rejected, time.Since(s.began))
	}
	return nil
}

func (s *stubborn) Recv() (*discovery.DiscoveryResponse, error) {
	if time.Since(s.began) > time.Hour || len(s.rejected) == 1000 {
		return nil, io.EOF
	}
	empty, err := anypb.New(&xds.RateLimitConfig{})
	return &discovery.DiscoveryResponse{Resources: []*anypb.Any{empty}}, err
}

// A server that sends a rejected configuration again and again is answered ever more seldom, and
// the log has the reason once.
func TestRejectedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := testkit.NewTranscript()
		s := &stubborn{began: time.Now()}
		f := &follower{reloader: &daemon.Reloader{
			Log: log.Logger(), Count: func(bool) {},
			Apply: func(text string) (done daemon.Applied, err error) {
				_, err = parseFiles(text, false)
				return done, err
			},
		}}
		if accepted, err := f.receive(t.Context(), s); accepted || !errors.Is(err, io.EOF) {
			t.Fatal(accepted, err)
		}
		if n := len(s.rejected); n < 60 || n > 130 {
			t.Errorf("%d rejections in an hour, want one in half a minute to a minute", n)
		}
		for i, most := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
			took := s.rejected[i] - s.rejected[max(0, i-1)]
			if most *= time.Second; took < most/2 || took > most {
				t.Errorf("rejection %d comes %v after the one before, want %v at most", i, took, most)
			}
		}
		if n := len(log.Lines); n != 2 {
			t.Errorf("%d lines in the log, want 2: the rejection and its reason", n)
		}
	})
}

// A configuration may have any text, also what a file of YAML cannot have.
func TestTextsOfXDS(t *testing.T) {
	for _, text := range []string{
		"\x7f", "\u0080", "\u009f", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff", "\U0001f600",
		"\x01\t\n", "\u0085\u00a0", "a: b # c", "'\"\\", "~",
	} {
		descriptor := &xds.RateLimitDescriptor{Key: "k", Value: text, RateLimit: yearlyPolicy(1)}
		r, err := anypb.New(&xds.RateLimitConfig{
			Name: "n", Domain: "d", Descriptors: []*xds.RateLimitDescriptor{descriptor},
		})
		if err != nil {
			t.Fatal(err)
		}
		content := contentOf([]*anypb.Any{r})
		if err := content.Err(); err != nil {
			t.Fatal(err)
		}
		c, err := parseFiles(content.Text, false)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if c.Domain("d").Match([]*config.Entry{{Key: "k", Value: text}}) == nil {
			t.Errorf("%q: another value", text)
		}
	}
}

// Both sides have certificates.
func TestXDSWithTLS(t *testing.T) {
	authority := testkit.NewCertificate("authority", nil)
	clients := x509.NewCertPool()
	clients.AddCert(authority.Certificate)
	c := xdstest.NewControl(t, credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{testkit.NewCertificate("localhost", authority).Pair()},
		ClientCAs:    clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	_, port, _ := net.SplitHostPort(c.Address)
	own := testkit.NewCertificate("client", authority)
	r := run(t, "", "--xds", "localhost:"+port, "--xds-tls",
		"--xds-ca", testkit.File(t, "ca", authority.PEM),
		"--xds-cert", testkit.File(t, "cert", own.PEM), "--xds-key", testkit.File(t, "key", own.Key))
	<-c.Asked
	c.Send(t, "1", of("1", yearlyPolicy(1)))
	expect(t, "answers", []string{query(t, dial(t, r.address))}, "OK OK:0")
}

func TestXDSFlags(t *testing.T) {
	for _, flags := range [][]string{
		{}, {"--config=c", "--xds=h:1"}, {"--xds=h:1", "--xds-ca=f"},
		{"--xds=h:1", "--xds-tls", "--xds-key=k"}, {"--xds=,"}, {"--xds=,h:1"},
	} {
		if _, err := parseFlags(t, flags...); err == nil {
			t.Errorf("%v: no error", flags)
		}
	}
	c, err := parseFlags(t, "--xds=h:1,h:2", "--xds=h:3")
	if err != nil || len(c.XDS) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	f := &follower{xdsFlags: xdsFlags{XDSTLS: true, XDSCA: filepath.Join(t.TempDir(), "none")}}
	if _, err := f.follow(t.Context(), "h:1"); err == nil || errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
