package proxy

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/facetest"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// The program lets policies through, with their buckets in memory and in Redis.
func TestFace(t *testing.T) {
	for name, store := range map[string]func(*testing.T, *Command){
		"memory": func(*testing.T, *Command) {},
		"Redis": func(t *testing.T, c *Command) {
			c.Redis, c.RedisTimeout = parseURL(t, redistest.Start(t).Addr), time.Minute
		},
	} {
		t.Run(name, func(t *testing.T) {
			facetest.Run(t, facetest.Face{Open: func(
				t *testing.T, policy string,
			) func(facetest.Request) facetest.Answer {
				p := run(t, func(c *Command) {
					c.Policy = file(t, policy)
					url := facetest.Serve(t, facetest.Application())
					if err := c.Upstream.UnmarshalText([]byte(url)); err != nil {
						t.Fatal(err)
					}
					store(t, c)
				})
				return func(r facetest.Request) facetest.Answer { return facetest.Send(t, p.proxy, r) }
			}})
		})
	}
}
