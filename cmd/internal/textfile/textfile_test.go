package textfile

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// A file must be a regular file of a bounded size.
func TestRead(t *testing.T) {
	large := testkit.File(t, "large", "")
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
	data, err := Read(testkit.File(t, "text", "text"))
	if data != "text" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}
