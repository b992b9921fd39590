package packaging

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// NOTICE has each module that is linked into the programs, with its version.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("../cmd/NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{if not .Replace}}"+
			"{{.Path}} {{.Version}}: {{end}}{{end}}{{end}}",
		"./tb", "./tb-rls")
	list.Dir = "../cmd"
	list.Env = append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "github.com/seed-181794aa/ratelimit") {
			continue // a release does not replace its own modules
		}
		modules++
		if !strings.Contains(string(notice), "\n"+line) {
			t.Errorf("NOTICE has no %q: run scripts/notice", line)
		}
	}
	licence, err := os.ReadFile("../cmd/internal/pagestyle/uplot/LICENSE")
	if err != nil || !strings.Contains(string(notice), strings.TrimSpace(string(licence))) {
		t.Errorf("NOTICE does not have the licence of uPlot (%v): run scripts/notice", err)
	}
	if modules < 10 {
		t.Errorf("%d packages of other modules", modules)
	}
}
