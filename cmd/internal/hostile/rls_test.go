package hostile

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// startRLS starts tb-rls on free ports.
func startRLS(t *testing.T, flags ...string) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p, stdout := launch(t, log, "tb-rls", append([]string{"--listen=127.0.0.1:0",
		"--admin=127.0.0.1:0"}, flags...)...)
	banner := bufio.NewScanner(stdout)
	for banner.Scan() && !strings.HasPrefix(banner.Text(), "Ctrl-C") {
		if rest, ok := strings.CutPrefix(banner.Text(), "Listening on "); ok {
			p.proxy, _, _ = strings.Cut(rest, ": ")
		}
		if _, rest, ok := strings.Cut(banner.Text(), "metrics: http://"); ok {
			p.admin, _, _ = strings.Cut(rest, "/")
		}
	}
	if p.proxy == "" {
		text, _ := os.ReadFile(p.log)
		t.Fatalf("tb-rls did not start: %v\n%s", p.wait(), text)
	}
	go io.Copy(io.Discard, stdout)
	return p
}

// envoys send rate limit requests until the service has stopped.
type envoys struct {
	address           string
	stopping          atomic.Bool
	granted, answered atomic.Int64
	group             sync.WaitGroup
}

func (e *envoys) run(t *testing.T) {
	conn, err := grpc.NewClient(e.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	request := &ratelimit.RateLimitRequest{
		Domain: "d", Descriptors: []*envoy.RateLimitDescriptor{{
			Entries: []*envoy.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}},
		}},
	}
	client := ratelimit.NewRateLimitServiceClient(conn)
	for {
		answer, err := client.ShouldRateLimit(t.Context(), request)
		switch {
		case err == nil:
			e.answered.Add(1)
			if answer.OverallCode == ratelimit.RateLimitResponse_OK {
				e.granted.Add(1)
			}
		case e.stopping.Load() && status.Code(err) == codes.Unavailable:
			return
		default:
			t.Error(err)
			return
		}
	}
}

// While clients flood the service, SIGHUP and changed limits lose no request and grant none too
// many, and SIGTERM answers what is under way.
func TestRLSUnderLoad(t *testing.T) {
	const burst = 1000
	text := func(yearly int) string {
		return fmt.Sprintf("domain: d\ndescriptors:\n- {key: k, rate_limit: {unit: year,"+
			" requests_per_unit: %d, burst: %d}}", yearly, burst)
	}
	file := testkit.File(t, "d.yaml", text(1))
	p := startRLS(t, "--config="+file, "--shutdown-delay=100ms")
	e := &envoys{address: p.proxy}
	for range 8 {
		e.group.Go(func() { e.run(t) })
	}
	await(t, "all tokens", func() bool { return e.granted.Load() >= burst })
	for i := range 5 {
		// A rename, because the service may be reading the file.
		if err := os.Rename(testkit.File(t, "d.yaml", text(i+2)), file); err != nil {
			t.Fatal(err)
		}
		p.signal(t, syscall.SIGHUP)
		before := e.answered.Load()
		await(t, "answers", func() bool { return e.answered.Load() > before+100 })
	}
	p.awaitLog(t, "configuration reloaded")
	e.stopping.Store(true)
	p.stop(t)
	e.group.Wait()
	if log := p.logged(t); strings.Contains(log, "cut off") || strings.Contains(log, "rejected") {
		t.Error(log)
	}
	if n := e.granted.Load(); n != burst {
		t.Errorf("%d granted, want %d", n, burst)
	}
}
