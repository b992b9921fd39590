package xtime

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	test := exec.Command("go", "test", "-overlay", name, "-json", "-count=1",
		"-run", "^(Test|Example)", rate)
	out, _ = test.Output() // fails, because tests do
	passed := 0
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		_, fails := differs[e.Test]
		switch {
		case e.Test == "" && e.Action == "build-output":
			t.Error(e.Output)
		case e.Test == "":
		case e.Action == "pass" && fails:
			t.Errorf("%s passes, and should differ: %s", e.Test, differs[e.Test])
		case e.Action == "pass":
			passed++
		case e.Action == "fail" && !fails:
			t.Errorf("%s fails", e.Test)
		}
	}
	if passed < 31 {
		t.Errorf("%d tests pass, want at least 31:\n%s", passed, out)
	}
}
