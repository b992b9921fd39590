package tokenbucket

import (
	"path/filepath"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit/facetest"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// The module lets policies through, with their buckets in memory and in Redis.
func TestFace(t *testing.T) {
	for name, options := range map[string]func(*testing.T) string{
		"memory": func(*testing.T) string { return "" },
		"Redis": func(t *testing.T) string {
			return "redis " + redistest.Start(t).Addr + " {\ntimeout 5s\n}\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			facetest.Run(t, facetest.Face{Open: func(
				t *testing.T, policy string,
			) func(facetest.Request) facetest.Answer {
				file := filepath.Join(t.TempDir(), "policy.json")
				writeFile(t, file, policy)
				s := start(t, "http://:80 {\ntoken_bucket {\npolicy_file "+file+"\n"+options(t)+
					"}\nreverse_proxy "+facetest.Serve(t, facetest.Application())+"\n}")
				return func(r facetest.Request) facetest.Answer { return facetest.Send(t, s.url, r) }
			}})
		})
	}
}
