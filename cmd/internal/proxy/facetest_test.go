package proxy

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/facetest"
)

// The program lets policies through.
func TestFace(t *testing.T) {
	facetest.Run(t, facetest.Face{Redis: true, Open: func(
		t *testing.T, policy, redis string,
	) func(facetest.Request) facetest.Answer {
		p := run(t, func(c *Command) {
			c.Policy = file(t, policy)
			_ = c.Upstream.UnmarshalText([]byte(facetest.Serve(t, facetest.Application())))
			if redis != "" {
				c.Redis, c.RedisTimeout = parseURL(t, redis), time.Minute
			}
		})
		return func(r facetest.Request) facetest.Answer { return facetest.Send(t, p.proxy, r) }
	}})
}
