package packaging

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
)

// NOTICE has the licences of what is linked into the programs, whatever the platform is.
func TestNotice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "NOTICE")
	if out, err := exec.Command("../scripts/notice", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Equal(read(t, "../cmd/NOTICE"), read(t, file)) {
		t.Error("cmd/NOTICE is not what is linked: run scripts/notice")
	}
}
