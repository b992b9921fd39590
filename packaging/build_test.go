// Package packaging tests the program tb as it is distributed: the static binary, the image and
// the service.
package packaging

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var release = flag.Bool("release", false, "build the program and test it: takes minutes")

// program is tb, or empty without the flag. tb-rls is beside it.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "packaging")
	if err != nil {
		panic(err)
	}
	if *release {
		if program, err = build("..", dir); err != nil {
			panic(err)
		}
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// build builds the programs for distribution from a directory with the sources, and returns the
// name of tb.
func build(sources, dir string) (string, error) {
	cmd := exec.Command("scripts/build", dir)
	cmd.Dir = sources
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "tb"), nil
}

func needsProgram(t *testing.T) {
	t.Helper()
	if program == "" {
		t.Skip("needs the program: run with -release")
	}
}

func TestBinaryIsStatic(t *testing.T) {
	needsProgram(t)
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
}

// A larger program would take longer to start in a cluster, and would need a reason.
func TestBinaryIsSmall(t *testing.T) {
	needsProgram(t)
	const most = 35e6 // bytes
	if n := len(read(t, program)); n > most {
		t.Errorf("the program has %d bytes, want at most %g", n, most)
	}
}

// The bill of materials stands beside the program, and has its modules.
func TestBillOfMaterials(t *testing.T) {
	needsProgram(t)
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string
		Components []struct{ Name string }
	}
	if err := json.Unmarshal(read(t, program+".cdx.json"), &bill); err != nil {
		t.Fatal(err)
	}
	if n := len(info.Deps) + 1; bill.BOMFormat != "CycloneDX" || len(bill.Components) != n || n < 20 {
		t.Errorf("a bill in %s has %d modules, want %d", bill.BOMFormat, len(bill.Components), n)
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

// The same sources give the same bytes in any directory.
func TestBinaryIsReproducible(t *testing.T) {
	needsProgram(t)
	var programs [2][]byte
	for i := range programs {
		name, err := build(sources(t), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		programs[i] = read(t, name)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("two builds differ")
	}
}

// sources returns a copy of the sources.
func sources(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Skip("the tests are not in a clone of the repository")
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from, to := filepath.Join("..", name), filepath.Join(dir, name)
		if _, err := os.Stat(from); os.IsNotExist(err) { // deleted, and not committed
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, read(t, from), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
