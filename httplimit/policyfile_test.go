package httplimit

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// A limiter follows its file until its context ends. What is rejected changes nothing, and has
// everything that is wrong.
func TestFromFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := PolicyFile{Name: filepath.Join(t.TempDir(), "policy.json")}
		var last Reload
		f.Reloaded = func(x Reload) { last = x }
		tenant := WithExtractor("tenant", func(*http.Request) string { return "t" })
		write := func(text string) {
			if err := os.WriteFile(f.Name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * textfile.PollInterval)
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fails := func(want string) {
			_, err := FromFile(ctx, f, tenant)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		fails("no such file")
		write(jsonRule("r", `["tenants"]`, 5, ""))
		fails("limit_keys[0]")
		write(jsonRule("r", `["tenant"]`, 5, ""))
		l, err := FromFile(ctx, f, tenant)
		if err != nil {
			t.Fatal(err)
		}
		write(jsonRule("r", `["tenant"]`, 5, ""))
		if last != (Reload{}) {
			t.Errorf("the same file: %+v", last)
		}
		write(jsonRule("r", `["tenant"]`, 7, ""))
		if n := l.Stats()[0].Limit.Capacity; n != 7 || last.Err != nil || last.Policy == nil {
			t.Errorf("a burst of %d, want 7, after %+v", n, last)
		}
		write(jsonRules(`"typo": 1`, jsonRule("r", `["tenants"]`, 9, "")))
		if last.Policy != nil || last.Err == nil || last.Cause != "the file changed" ||
			!strings.Contains(last.Err.Error(), "typo") ||
			!strings.Contains(last.Err.Error(), "rules[0].limit_keys[0]") {
			t.Errorf("a policy with errors: %+v", last)
		}
		cancel()
		synctest.Wait()
		write(jsonRule("r", `["tenant"]`, 9, ""))
		if n := l.Stats()[0].Limit.Capacity; n != 7 {
			t.Errorf("a burst of %d after the end, want 7", n)
		}
		if _, err := FromFile(ctx, f, WithTimeout(-1)); err == nil {
			t.Error("an option with an error is accepted")
		}
	})
}
