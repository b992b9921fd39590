package hostile

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// startRLS starts tb-rls on free ports.
func startRLS(t *testing.T, flags ...string) *process {
	t.Helper()
	p, stdout := launch(t, newLog(t), "tb-rls", append([]string{"--listen=127.0.0.1:0",
		"--admin=127.0.0.1:0"}, flags...)...)
	p.await(t, stdout, func(line string) {
		if rest, ok := strings.CutPrefix(line, "Listening on "); ok {
			p.proxy, _, _ = strings.Cut(rest, ": ")
		}
		if _, rest, ok := strings.Cut(line, "metrics: http://"); ok {
			p.admin, _, _ = strings.Cut(rest, "/")
		}
	})
	return p
}

// While clients flood the service, SIGHUP and changed limits lose no request and grant none too
// many, and SIGTERM answers what is under way.
func TestRLSUnderLoad(t *testing.T) {
	const burst = 1000
	text := func(yearly int) string {
		return fmt.Sprintf("domain: soak\ndescriptors:\n- {key: client, rate_limit: {unit: year,"+
			" requests_per_unit: %d, burst: %d}}", yearly, burst)
	}
	file := testkit.File(t, "d.yaml", text(1))
	p := startRLS(t, "--config="+file, "--shutdown-delay=100ms")
	var stopping atomic.Bool
	var granted, answered atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { // until the service has stopped
			c := &grpcClient{address: p.proxy}
			defer c.close()
			var err error
			for err == nil {
				var ok bool
				if ok, err = c.ask(t.Context(), request{client: "192.0.2.1"}); ok {
					granted.Add(1)
				}
				answered.Add(1)
			}
			if !stopping.Load() || status.Code(err) != codes.Unavailable {
				t.Error(err)
			}
		})
	}
	await(t, "all tokens", func() bool { return granted.Load() >= burst })
	for i := range 5 {
		// A rename, because the service may be reading the file.
		if err := os.Rename(testkit.File(t, "d.yaml", text(i+2)), file); err != nil {
			t.Fatal(err)
		}
		p.signal(t, syscall.SIGHUP)
		before := answered.Load()
		await(t, "answers", func() bool { return answered.Load() > before+100 })
	}
	p.awaitLog(t, "configuration reloaded")
	stopping.Store(true)
	p.stop(t)
	group.Wait()
	if log := p.logged(t); strings.Contains(log, "cut off") || strings.Contains(log, "rejected") {
		t.Error(log)
	}
	if n := granted.Load(); n != burst {
		t.Errorf("%d granted, want %d", n, burst)
	}
}
