package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// adapting is a policy that adapts its rate to the upstream.
const adapting = `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 500, "burst": 10,
	"adaptive": {"min": 20, "max": 2000, "target_p99": "200ms"}}}`

func withAdaptive(t *testing.T) func(*Config) {
	return func(c *Config) {
		var err error
		if c.Policy, err = cli.ParsePolicy([]byte(adapting)); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a connection to the upstream, the rate falls.
func TestAdaptiveRateFallsWithoutUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, 1, withAdaptive(t))
		down := newPipes()
		down.Close()
		m.upstream.Transport.(*http.Transport).DialContext = func(
			ctx context.Context, network, address string,
		) (net.Conn, error) {
			_, err := down.dial(ctx, network, address)
			return nil, &net.OpError{Op: "dial", Err: errors.Join(err)}
		}
		for range 400 {
			time.Sleep(10 * time.Millisecond)
			m.send(t.Context(), "/")
			m.pending.Wait()
		}
		if l := m.Limiter.Stats()[0].Limit; float64(l.Tokens)/l.Per.Seconds() >= 100 {
			t.Errorf("%v", l)
		}
	})
}
