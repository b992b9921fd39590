package main

import (
	"regexp"
	"testing"
)

// A program that the go command gave no version has none. The test of scripts/release has the
// versions of releases and of clones.
func TestVersion(t *testing.T) {
	status, stdout, stderr := tb(t, "", "--version")
	if status != 0 || stderr != "" ||
		!regexp.MustCompile(`^tb \(devel\), go\S+, \w+/\w+\n$`).MatchString(stdout) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
