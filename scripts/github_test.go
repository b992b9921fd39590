package scripts

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDependabotKnowsAllModules requires that the dependencies of each module are kept current.
func TestDependabotKnowsAllModules(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	out, err := exec.Command("bash", "./modules").Output()
	if err != nil {
		t.Skip("git has no list of the modules: ", err)
	}
	config, err := os.ReadFile("../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsSeq(string(out)) {
		line := "\n      - /" + strings.TrimPrefix(module, ".") + "\n"
		if !strings.Contains(string(config), line) {
			t.Errorf(".github/dependabot.yml lacks the module %s", module)
		}
	}
}
