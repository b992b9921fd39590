// Package packaging tests the programs as they are distributed: the static binaries, the image and
// the service.
package packaging

import (
	"bytes"
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var release = flag.Bool("release", false, "build the program and test it: takes minutes")

// build builds the programs for distribution from a directory with the sources, and returns the
// name of tb, which the others are beside. Without the flag it skips the test.
func build(t *testing.T, sources string) string {
	t.Helper()
	if !*release {
		t.Skip("needs the program: run with -release")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "scripts/build", dir)
	cmd.Dir = sources
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "tb")
}

// The program needs no shared library. A larger one would take longer to start in a cluster, and
// would need a reason.
func TestBinaryIsStaticAndSmall(t *testing.T) {
	program := build(t, "..")
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %v: it needs shared libraries", p.Type)
		}
	}
	if file.Section(".symtab") != nil || file.Section(".debug_info") != nil {
		t.Error("the program has symbols")
	}
	const most = 35e6 // bytes
	if n := len(read(t, program)); n > most {
		t.Errorf("the program has %d bytes, want at most %g", n, most)
	}
}

// The layer of the image with the modules of others needs the go.mod of each module of this
// repository that the program requires.
func TestImageDownloadsModulesFirst(t *testing.T) {
	layer, _, ok := strings.Cut(string(read(t, "../Dockerfile")), "mod download")
	replaced := regexp.MustCompile(`(?m)^replace \S+ => (\S+)$`)
	modules := replaced.FindAllStringSubmatch(string(read(t, "../cmd/go.mod")), -1)
	if !ok || len(modules) == 0 {
		t.Fatalf("a layer with modules: %v, and %d modules", ok, len(modules))
	}
	for _, m := range modules {
		dir := filepath.Join("cmd", m[1])
		if want := "COPY " + filepath.Join(dir, "go.mod") + " "; !strings.Contains(layer, want) {
			t.Errorf("the Dockerfile has no %s before it downloads modules", want)
		}
	}
}

// The same commit gives the same bytes in any directory.
func TestBinaryIsReproducible(t *testing.T) {
	var programs [2][]byte
	for i := range programs {
		dir := t.TempDir()
		if out, err := exec.Command("git", "clone", "-q", "..", dir).CombinedOutput(); err != nil {
			t.Skipf("the tests are not in a clone of the repository: %s", out)
		}
		programs[i] = read(t, build(t, dir))
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("two builds differ")
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
