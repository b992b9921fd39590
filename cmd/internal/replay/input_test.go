package replay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFileNamedTwiceIsOneInput(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "a.log"), filepath.Join(dir, "link.log")
	err := os.WriteFile(name, []byte("12345"), 0o600)
	if err = errors.Join(err, os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	names := []string{"-", name, dir + "/./a.log", link, "-", "-"}
	list, err := findInputs(names, nil)
	if err != nil || len(list) != 2 || list[0].Name != "stdin" || list[1].Name != name {
		t.Errorf("%d inputs, %v; want stdin and a.log", len(list), err)
	}
}
