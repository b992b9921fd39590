package tokenbucket

import (
	"path/filepath"
	"testing"

	"github.com/seed-181794aa/ratelimit/proof/facetest"
)

// The module lets policies through.
func TestFace(t *testing.T) {
	facetest.Run(t, facetest.Face{Redis: true, Open: func(
		t *testing.T, policy, redis string,
	) func(facetest.Request) facetest.Answer {
		file := filepath.Join(t.TempDir(), "policy.json")
		writeFile(t, file, policy)
		options := "policy_file " + file
		if redis != "" {
			options += "\nredis " + redis + " {\ntimeout 5s\n}"
		}
		s := start(t, "http://:80 {\ntoken_bucket {\n"+options+
			"\n}\nreverse_proxy "+facetest.Serve(t, facetest.Application())+"\n}")
		return func(r facetest.Request) facetest.Answer { return facetest.Send(t, s.url, r) }
	}})
}
