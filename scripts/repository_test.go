package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is a directory in which a test runs commands.
type repository struct {
	t   *testing.T
	dir string
	env []string
}

// with returns the repository with more variables in the environment of its commands.
func (r repository) with(env ...string) repository {
	r.env = append(slices.Clip(r.env), env...)
	return r
}

// try runs a command and returns what it prints, and its error.
func (r repository) try(name string, args ...string) (string, error) {
	if strings.HasPrefix(name, "scripts/") {
		name = filepath.Join(r.dir, name)
	}
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), "GOWORK="), r.env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run runs a command that must succeed, and returns what it prints.
func (r repository) run(name string, args ...string) string {
	r.t.Helper()
	out, err := r.try(name, args...)
	if err != nil {
		r.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return out
}

// write writes a file.
func (r repository) write(name, content string) repository {
	r.t.Helper()
	name = filepath.Join(r.dir, name)
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(content), 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return r
}

// commit commits all files.
func (r repository) commit() {
	r.t.Helper()
	r.run("git", "add", "--all")
	r.run("git", "commit", "-q", "-m", "change")
}

// state returns the commits, the tags and the changes of a repository.
func (r repository) state() string {
	r.t.Helper()
	return strings.Join([]string{
		r.run("git", "rev-parse", "HEAD"), r.run("git", "for-each-ref"),
		r.run("git", "status", "--porcelain"), r.run("git", "diff", "HEAD"),
	}, "\n")
}

// newRepository returns a repository that a git command makes in an empty directory.
func newRepository(t *testing.T, git ...string) repository {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command many times")
	}
	for _, program := range []string{"git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program, " is not installed")
		}
	}
	r := repository{t: t, dir: t.TempDir()}
	r.run("git", append(git, r.dir)...)
	r.run("git", "config", "user.name", "a maintainer")
	r.run("git", "config", "user.email", "maintainer@example.com")
	return r
}

// small returns a repository with the files of testdata/small.txt, and the scripts of a release.
func small(t *testing.T) repository {
	t.Helper()
	r := newRepository(t, "init", "-q", "-b", "main")
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, file := range strings.Split(read("testdata/small.txt"), "\n-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		r.write(name, strings.TrimSuffix(content, "\n")+"\n")
	}
	for _, name := range []string{"scripts/release", "scripts/modules"} {
		r.write(name, read("../"+name)).run("chmod", "+x", name)
	}
	r.commit()
	return r
}
