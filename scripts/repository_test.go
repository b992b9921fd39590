package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a directory in which a test runs commands of bash.
type repository struct {
	t   *testing.T
	dir string
}

// try runs commands until one fails, and returns what they print, and the error of the last one.
func (r repository) try(commands string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GOWORK=")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run runs commands that must succeed, and returns what they print.
func (r repository) run(commands string) string {
	r.t.Helper()
	out, err := r.try(commands)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return out
}

// commit runs commands, and commits what they change.
func (r repository) commit(commands string) {
	r.t.Helper()
	r.run(commands + "\ngit add --all && git commit -q -m change")
}

// newRepository returns the repository that a git command makes in an empty directory.
func newRepository(t *testing.T, git string) repository {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command many times")
	}
	for _, program := range []string{"git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, " is not installed")
		}
	}
	r := repository{t, t.TempDir()}
	r.run("git " + git + " . && git config user.name a && git config user.email a@example.com")
	return r
}

// small returns a repository with the files of testdata/small.txt, and the scripts of a release.
func small(t *testing.T) repository {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	r := newRepository(t, "init -q -b main")
	r.commit("here='" + here + `'
		awk '/^-- / {file = $2; system("mkdir -p $(dirname " file ")"); next}
			file {print >file}' "$here/testdata/small.txt"
		mkdir scripts && cp "$here"/{release,modules} scripts`)
	return r
}
