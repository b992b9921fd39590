package proxy

import (
	"net/http/httptest"
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
				upstream := httptest.NewServer(facetest.Application())
				t.Cleanup(upstream.Close)
				p := run(t, func(c *Command) {
					c.Policy = file(t, policy)
					if err := c.Upstream.UnmarshalText([]byte(upstream.URL)); err != nil {
						t.Fatal(err)
					}
					store(t, c)
				})
				return func(r facetest.Request) facetest.Answer { return facetest.Send(t, p.proxy, r) }
			}})
		})
	}
}
