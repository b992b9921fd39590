package textfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file must be a regular file of a bounded size.
func TestRead(t *testing.T) {
	large := file(t, "")
	if err := os.Truncate(large, maxSize+1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		large: "want at most", t.TempDir(): "want a regular file", os.DevNull: "want a regular file",
		"/none": "no such file",
	} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	data, err := Read(file(t, "text"))
	if data != "text" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// file writes a file and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
