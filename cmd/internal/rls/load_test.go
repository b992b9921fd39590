package rls

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	xds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// changes is how many changes a service meets under load. A certificate is read again after half a
// second, so there are a tenth as many changes of certificates.
var changes = flag.Int("changes", 50, "changes of the configuration under load")

// load calls a function in some goroutines, and returns a function that waits until each has
// called it again, and one that stops the calls.
func load(call func()) (again, stop func()) {
	const callers = 8
	var tasks sync.WaitGroup
	var calls [callers]atomic.Int64
	stopped, called := make(chan struct{}), make(chan struct{}, callers)
	for i := range callers {
		tasks.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
				}
				call()
				calls[i].Add(1)
				select {
				case called <- struct{}{}:
				default:
				}
			}
		})
	}
	again = func() {
		for i := range callers {
			for before := calls[i].Load(); calls[i].Load() == before; {
				<-called
			}
		}
	}
	return again, func() { close(stopped); tasks.Wait() }
}

// While configurations of a control plane come, each decision is right: a limit of 0 refuses, an
// unlimited descriptor passes, a limit that stays grants as much as it says, and a limit that
// changes between two that grant always grants.
func TestChangesOfXDSUnderLoad(t *testing.T) {
	const granted = 1000
	c := newControl(t, insecure.NewCredentials())
	r := run(t, "", "--xds", c.address)
	client := ratelimit.NewRateLimitServiceClient(dial(t, r.address))
	send := func(version int) {
		t.Helper()
		config, err := anypb.New(&xds.RateLimitConfig{
			Name: "limits", Domain: "d", Descriptors: []*xds.RateLimitDescriptor{
				{Key: "none", RateLimit: yearlyPolicy(0)},
				{Key: "any", RateLimit: &xds.RateLimitPolicy{Unlimited: true}},
				{Key: "same", RateLimit: yearlyPolicy(granted)},
				{Key: "other", RateLimit: yearlyPolicy(1_000_000_000 - uint32(version%2))},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(version)
		c.answers <- &discovery.DiscoveryResponse{
			VersionInfo: text, Nonce: text, Resources: []*anypb.Any{config},
		}
		if asked := <-c.asked; asked.GetVersionInfo() != text || asked.GetErrorDetail() != nil {
			t.Errorf("version %d: %v", version, asked)
		}
	}
	<-c.asked
	send(0)
	var wrong, same, decisions atomic.Int64
	const ok = ratelimit.RateLimitResponse_OK
	again, stop := load(func() {
		for _, key := range []string{"none", "any", "same", "other"} {
			answer, err := client.ShouldRateLimit(t.Context(), request(1, key+"=v"))
			decisions.Add(1)
			passes := answer.GetOverallCode() == ok
			switch {
			case err != nil || key != "same" && passes == (key == "none"):
				wrong.Add(1)
			case key == "same" && passes:
				same.Add(1)
			}
		}
	})
	for version := range *changes {
		again()
		send(version + 1)
	}
	for same.Load() < granted && wrong.Load() == 0 {
		again()
	}
	again()
	stop()
	if wrong.Load() != 0 || same.Load() != granted {
		t.Errorf("of %d decisions, %d are wrong, and %d of the limit of %d are granted",
			decisions.Load(), wrong.Load(), same.Load(), granted)
	}
	t.Logf("%d decisions during %d changes", decisions.Load(), *changes)
}

// While certificates change, no call fails: connections go on, and each new one meets a certificate
// that its key fits.
func TestChangesOfCertificatesUnderLoad(t *testing.T) {
	dir, servers := t.TempDir(), testkit.NewCertificate("servers", nil)
	name := func(file string) string { return filepath.Join(dir, file) }
	install := func(version int) { // as Kubernetes does: a link to a directory is replaced
		t.Helper()
		c := testkit.NewCertificate("server.test", servers)
		data := fmt.Sprintf("..%d", version)
		if err := os.Mkdir(name(data), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"cert": c.PEM, "key": c.Key} {
			if err := os.WriteFile(name(filepath.Join(data, file)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(data, name("next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name("next"), name("..data")); err != nil {
			t.Fatal(err)
		}
	}
	install(0)
	r := run(t, yearly("1000000000"), "--tls-cert", name("..data/cert"),
		"--tls-key", name("..data/key"))
	secure := &tls.Config{ServerName: "server.test", RootCAs: x509.NewCertPool()}
	secure.RootCAs.AddCert(servers.Certificate)
	client := grpc.WithTransportCredentials(credentials.NewTLS(secure))
	kept := ratelimit.NewRateLimitServiceClient(dial(t, r.address, client))
	var failed, calls atomic.Int64
	again, stop := load(func() {
		conn, err := grpc.NewClient(r.address, client)
		if err != nil {
			failed.Add(1)
			return
		}
		defer conn.Close()
		for _, c := range []ratelimit.RateLimitServiceClient{
			kept, ratelimit.NewRateLimitServiceClient(conn),
		} {
			calls.Add(1)
			if _, err := c.ShouldRateLimit(t.Context(), request(1, "k=v")); err != nil {
				failed.Add(1)
			}
		}
	})
	swaps := *changes / 10
	for version := range swaps {
		again()
		install(version + 1)
		r.Log.Until(t, "certificate reloaded")
	}
	again()
	stop()
	if failed.Load() > 0 {
		t.Errorf("%d of %d calls failed", failed.Load(), calls.Load())
	}
	t.Logf("%d calls during %d changes", calls.Load(), swaps)
}
