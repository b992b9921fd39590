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
			url := facetest.Serve(t, facetest.Application())
			if err := c.Upstream.UnmarshalText([]byte(url)); err != nil {
				t.Fatal(err)
			}
			if redis != "" {
				c.Redis, c.RedisTimeout = parseURL(t, redis), time.Minute
			}
		})
		return func(r facetest.Request) facetest.Answer { return facetest.Send(t, p.proxy, r) }
	}})
}
