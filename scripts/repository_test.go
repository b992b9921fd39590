package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// repository is a directory in which a test runs commands of bash. Their variable tree names the
// directory of this repository.
type repository struct {
	t         *testing.T
	dir, tree string
}

// run runs commands that must succeed, and returns what they print. A command that fails is
// printed, too.
func (r repository) run(commands string) string {
	r.t.Helper()
	commands = `trap 'echo "failed: $BASH_COMMAND"' ERR` + "\n" + commands
	cmd := exec.CommandContext(r.t.Context(), "bash", "-Eeuo", "pipefail", "-c", commands)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GOWORK=", "tree="+r.tree)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s\n%v:\n%s", commands, err, out)
	}
	return string(out)
}

// commit runs commands, and commits what they change.
func (r repository) commit(commands string) {
	r.t.Helper()
	r.run(commands + "\ngit add --all && git commit -q -m change")
}

// newRepository returns the repository that git commands make in an empty directory.
func newRepository(t *testing.T, commands string) repository {
	t.Helper()
	if !*all && !*whole {
		t.Skip("tests scripts of maintainers: run with -all")
	}
	tree, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	r := repository{t, t.TempDir(), tree}
	r.run(commands + "\ngit config user.name a; git config user.email a@example.com")
	return r
}

// small returns a repository with the files of testdata/small.txt, and the scripts of a release.
func small(t *testing.T) repository {
	t.Helper()
	r := newRepository(t, "git init -q -b main")
	r.commit(`awk '/^-- / {file = $2; system("mkdir -p $(dirname " file ")"); next}
			file {print >file}' "$tree/scripts/testdata/small.txt"
		mkdir scripts && cp "$tree"/scripts/{release,modules} scripts`)
	return r
}
