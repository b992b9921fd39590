package main

import (
	"os/exec"
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

// The workflow of a release builds each platform in a clean tree. In another one a program has the
// version +dirty, and not the checksum that it has in the release.
func TestReleaseWorkflowKeepsTheTreeClean(t *testing.T) {
	for _, program := range []string{"bash", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-ec", `
		tree=$PWD/../.. GITHUB_REF_NAME=v0.1.0
		cd "$0" && git init -q && cp "$tree/.gitignore" . && git add .
		git -c user.name=a -c user.email=a@example.com commit -q -m first
		build() {
			git status --porcelain
			[[ -z $(git status --porcelain) ]]
			mkdir -p "$1/tb"
		}
		eval "$(sed '1,/- run: |/d; /- uses:/,$d; s,scripts/build,build,; /sha256sum/d' \
			"$tree/.github/workflows/release.yml")"
		ls dist | grep linux-arm64`, t.TempDir()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
