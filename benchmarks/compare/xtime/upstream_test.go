package xtime

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// differs are the tests of x/time/rate that fail here, and why.
var differs = map[string]string{
	"TestLimiterJumpBackwards":  "a time that goes back credits tokens again: golang.org/issue/71360",
	"TestReserveJumpBack":       "so it does for a reservation: golang.org/issue/76037",
	"TestReserveJumpBackCancel": "so it does after Cancel: golang.org/issue/65508",
	"TestReserveSetBurst":       "so it does after SetBurst: golang.org/issue/71360",
	"TestCancel1Token":          "Cancel gives back a part while a newer reservation waits",
	"TestCancelMulti":           "so it does, and forgets the newer one that is cancelled first",
}

// edits are the changes to the test files of x/time/rate: one line that logs fields of a Limiter,
// and the import.
var edits = strings.NewReplacer(
	"lim.tokens, lim.last, lim.lastEvent", "lim.Tokens(), nil, nil",
	`"golang.org/x/time/rate"`, `"github.com/seed-181794aa/ratelimit/rate"`,
)

var verdict = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\w+)`)

// The tests and the examples of x/time/rate pass in package rate, but for those that differ, which
// fail.
func TestUpstream(t *testing.T) {
	if testing.Short() {
		t.Skip("the tests of x/time sleep for three seconds")
	}
	const rate, xrate = "github.com/seed-181794aa/ratelimit/rate", "golang.org/x/time/rate"
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", rate, xrate).Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 2 {
		t.Fatalf("directories %q, %v", dirs, err)
	}
	files, err := filepath.Glob(filepath.Join(dirs[1], "*_test.go"))
	if err != nil || len(files) < 2 {
		t.Fatalf("test files of x/time: %v, %v", files, err)
	}
	tmp, replace := t.TempDir(), map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, name), []byte(edits.Replace(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(dirs[0], "upstream_"+name)] = filepath.Join(tmp, name)
	}
	overlay, name := map[string]any{"Replace": replace}, filepath.Join(tmp, "overlay.json")
	text, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, _ = exec.Command("go", "test", "-overlay", name, "-v", "-count=1",
		"-run", "^(Test|Example)", rate).CombinedOutput() // fails, because tests do
	passed := 0
	for _, m := range verdict.FindAllStringSubmatch(string(out), -1) {
		_, fails := differs[m[2]]
		switch passes := m[1] == "PASS"; {
		case passes && fails:
			t.Errorf("%s passes, and should differ: %s", m[2], differs[m[2]])
		case passes:
			passed++
		case !fails:
			t.Errorf("%s fails", m[2])
		}
	}
	if passed < 31 {
		t.Errorf("%d tests pass, want at least 31:\n%s", passed, out)
	}
}
