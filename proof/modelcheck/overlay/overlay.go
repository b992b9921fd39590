// Package overlay builds the variants of tb/cas, lru and tb.TakeAll that are explored. Their
// files exist only in the overlay of a go command, so the code that ships has no hooks. A
// variant is a copy of the code with some imports replaced, and a view: a file of
// modelcheck/testdata that gives tests access to the internals.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Edit replaces a text of a file. The text must occur there exactly once.
type Edit struct{ File, Old, New string }

// Variant is the code with some edits.
type Variant struct {
	Name  string
	Edits []Edit
}

// Packages is a pattern that matches the packages of the variants.
const Packages = module + "/" + home + "/..."

const (
	module = "github.com/seed-181794aa/ratelimit"
	shims  = module + "/proof/modelcheck/"
	home   = "proof/modelcheck/variants" // exists only in overlays
)

// part is a package that variants copy: its directory, the files to copy, and the path under
// which the code or a view imports it.
type part struct{ name, files, imported string }

var (
	cas    = part{name: "tb/cas", files: "*.go"}
	shared = []part{
		{"internal/unit", "*.go", module + "/internal/unit"},
		{"lru", "*.go", module + "/lru"},
		{"tb", "charge.go", module + "/" + home + "/tb"},
	}
)

// builder writes an overlay.
type builder struct {
	root    string // of the module
	dir     string // of the files to write
	replace map[string]string
}

// Write writes an overlay of the module at root into dir. It contains the variants, and a file
// that imports them into the test package at pkg, which is relative to root. Write returns the
// file name for the -overlay flag of the go command.
func Write(root, dir, pkg string, variants []Variant) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	b := builder{root, dir, make(map[string]string)}
	var imports strings.Builder
	for _, p := range shared {
		if err := b.copy(p, home, Variant{}); err != nil {
			return "", err
		}
	}
	for i, v := range variants {
		to := fmt.Sprintf("%s/v%d", home, i)
		own := []part{cas}
		for _, p := range shared {
			if v.count(p.name) > 0 { // most variants use the shared copy
				own = append(own, p)
			}
		}
		for _, p := range own {
			if err := b.copy(p, to, v); err != nil {
				return "", fmt.Errorf("variant %q: %w", v.Name, err)
			}
		}
		fmt.Fprintf(&imports, "import _ %q\n", module+"/"+to+"/tb/cas")
	}
	file := filepath.Join(pkg, "variants_test.go")
	content := "package " + filepath.Base(pkg) + "\n\n" + imports.String()
	if err := b.write(file, content); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": b.replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// count returns the number of edits to files of pkg.
func (v Variant) count(pkg string) int {
	n := 0
	for _, e := range v.Edits {
		if path.Dir(e.File) == pkg {
			n++
		}
	}
	return n
}

// copy adds v's copy of p below the directory to.
func (b *builder) copy(p part, to string, v Variant) error {
	replace := []string{
		`"sync/atomic"`, `"` + shims + `atomic"`,
		`"sync"`, `"` + shims + `sync"`,
		`"github.com/puzpuzpuz/xsync/v3"`, `"` + shims + `xsync"`,
	}
	for _, s := range shared {
		from := home
		if v.count(s.name) > 0 {
			from = to
		}
		replace = append(replace, `"`+s.imported+`"`, `"`+module+"/"+from+"/"+s.name+`"`)
	}
	imports := strings.NewReplacer(replace...)
	files, err := filepath.Glob(filepath.Join(b.root, p.name, p.files))
	if err != nil {
		return err
	}
	edited := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		content, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		name, code := p.name+"/"+filepath.Base(f), string(content)
		for _, e := range v.Edits {
			if e.File != name {
				continue
			}
			if n := strings.Count(code, e.Old); n != 1 {
				return fmt.Errorf("%s contains this text %d times, want once:\n%s", name, n, e.Old)
			}
			code = strings.Replace(code, e.Old, e.New, 1)
			edited++
		}
		if err := b.write(to+"/"+name, imports.Replace(code)); err != nil {
			return err
		}
	}
	if want := v.count(p.name); edited != want {
		return fmt.Errorf("made %d of %d edits in %s: no such file", edited, want, p.name)
	}
	view, err := os.ReadFile(filepath.Join(b.root, "proof/modelcheck/testdata",
		filepath.Base(p.name)+".go"))
	if err != nil {
		return err
	}
	return b.write(to+"/"+p.name+"/view.go",
		imports.Replace(strings.ReplaceAll(string(view), "VARIANT", v.Name)))
}

// write adds a file to the overlay.
func (b *builder) write(name, content string) error {
	file := filepath.Join(b.dir, strings.ReplaceAll(name, "/", "-"))
	b.replace[filepath.Join(b.root, name)] = file
	return os.WriteFile(file, []byte(content), 0o600)
}
