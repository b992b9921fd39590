// Package scripts tests the scripts of the repository.
package scripts

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var whole = flag.Bool("release", false, "release the whole tree and use it: takes minutes")

// Users install the command and import the modules of a release as from a public proxy, in a
// place that has neither the clone nor its workspace.
func TestReleasedModulesAreUsable(t *testing.T) {
	if !*whole {
		t.Skip("builds the program and others with other flags: run with -release")
	}
	tree := repository{t: t, dir: ".."}.run("git", "rev-parse", "--show-toplevel")
	r := newRepository(t, "clone", "-q", "--no-tags", tree)
	r.run("git", "remote", "remove", "origin")
	root, _, _ := strings.Cut(r.run("go", "list", "-m"), "\n")
	r.run("scripts/release", "v0.1.0")
	bill := r.run("cat", "dist/v0.1.0/windows-arm64/tb.exe.cdx.json")
	if !strings.Contains(bill, "cmd@v0.1.0") {
		t.Errorf("the bill of materials is of another version:\n%.1000s", bill)
	}
	files := r.run("env", "-C", "dist/v0.1.0", "sha256sum", "--check", "SHA256SUMS")
	if n := strings.Count(files, ": OK"); n != 6*3*2 {
		t.Errorf("%d files, want three programs and their bills for six platforms:\n%s", n, files)
	}
	for _, dir := range []string{".", "cmd", "tb/redis"} {
		for _, workspace := range []string{"", "off"} {
			r := r.with("GOWORK=" + workspace)
			r.run("go", "-C", dir, "list", "-m", "all")
			r.run("go", "-C", dir, "mod", "download")
		}
	}
	if status := r.run("git", "status", "--porcelain"); status != "" {
		t.Errorf("the release leaves changes:\n%s", status)
	}

	// The go command makes the zip files of a proxy out of the tags.
	ordinary := "file://" + filepath.Join(r.run("go", "env", "GOMODCACHE"), "cache", "download") +
		"," + r.run("go", "env", "GOPROXY")
	published := t.TempDir()
	var modules []string
	for _, tag := range strings.Fields(r.run("git", "tag", "--points-at", "HEAD^")) {
		module, version := root, tag
		if i := strings.LastIndex(tag, "/"); i >= 0 {
			module, version = root+"/"+tag[:i], tag[i+1:]
		}
		modules = append(modules, module)
		r.with("GOMODCACHE="+published, "GOPRIVATE="+root, "GOWORK=off", "GOFLAGS=-modcacherw",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+r.dir+".insteadOf",
			"GIT_CONFIG_VALUE_0=https://"+root).run("go", "mod", "download", module+"@"+version)
	}

	bin := t.TempDir()
	user := repository{t: t, dir: t.TempDir()}.with(
		"GOPROXY=file://"+filepath.Join(published, "cache", "download")+","+ordinary,
		"GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE="+t.TempDir(), "GOBIN="+bin)
	for _, program := range []string{"tb", "tb-proxy", "tb-rls"} {
		user.run("go", "install", root+"/cmd/"+program+"@latest")
		got := user.run(filepath.Join(bin, program), "--version")
		if !strings.HasPrefix(got, program+" v0.1.0,") {
			t.Errorf("%s --version: %q", program, got)
		}
	}
	// In the clone, the commit behind the release has a version of its own.
	r.run("go", "build", "-buildvcs=true", "-trimpath", "-o", bin, "./cmd/tb")
	if got := r.run(filepath.Join(bin, "tb"), "--version"); !strings.HasPrefix(got, "tb v0.1.1-0.") {
		t.Errorf("tb --version in a clone: %q", got)
	}
	user.run("go", "mod", "init", "example.com/app")
	user.write("main.go", `package main

import (
	"fmt"

	"`+root+`"
	_ "`+root+`/caddy"
	_ "`+root+`/grpclimit"
	_ "`+root+`/metrics"
	"`+root+`/tb/redis"
)

func main() {
	_, err := redis.New(nil, ratelimit.Limit{})
	fmt.Println(err)
}
`)
	for _, module := range modules {
		user.run("go", "get", module+"@latest")
	}
	if got := user.run("go", "run", "."); !strings.Contains(got, "client is nil") {
		t.Errorf("the program of a user prints %q", got)
	}
}

// The modules of a tagged commit require each other at the version. The modules of the next commit
// are taken from the tree again.
func TestReleasesFollowEachOther(t *testing.T) {
	t.Parallel()
	r := small(t)
	for _, version := range []string{"v0.1.0", "v1.0.0"} {
		out := r.run("scripts/release", version)
		push := "git push --atomic origin main " + version + " store/" + version + " cmd/app/" + version
		if !strings.Contains(out, push) {
			t.Errorf("%s: no %q in\n%s", version, push, out)
		}
		if status := r.run("git", "status", "--porcelain"); status != "" {
			t.Errorf("%s leaves changes:\n%s", version, status)
		}
		for _, tag := range []string{version, "store/" + version, "cmd/app/" + version} {
			if r.run("git", "rev-parse", tag+"^{}") != r.run("git", "rev-parse", "HEAD^") {
				t.Errorf("%s is not on the commit before the last", tag)
			}
		}
		for _, module := range []string{"store", "cmd/app", "examples/demo"} {
			file := module + "/go.mod"
			released, next := r.run("git", "show", version+":"+file), r.run("cat", file)
			require := "github.com/example/root " + version
			if !strings.Contains(released, require) || !strings.Contains(next, require) {
				t.Errorf("%s of %s has no %s:\n%s\n%s", file, version, require, released, next)
			}
			replaced := module == "examples/demo" // it is not released
			if strings.Contains(released, "replace") != replaced || !strings.Contains(next, "replace") {
				t.Errorf("%s: replaced in the tag and after it:\n%s\n%s", file, released, next)
			}
		}
		if sum := r.run("git", "show", version+":cmd/app/go.sum"); strings.Count(sum, version) != 4 {
			t.Errorf("%s: sums of two modules:\n%s", version, sum)
		}
		changelog := r.run("cat", "CHANGELOG.md")
		if !strings.Contains(changelog, "## Unreleased\n\n## "+version+", 20") {
			t.Errorf("%s: CHANGELOG.md:\n%s", version, changelog)
		}
		r.write("CHANGELOG.md", strings.Replace(changelog, "Unreleased\n", "Unreleased\n\n- new\n", 1))
		r.commit()
	}
}

// A failure at any step leaves the commits, tags and files of the repository as they were, and
// no temporary files.
func TestReleaseThatFailsChangesNothing(t *testing.T) {
	const ok = "v0.1.0"
	for _, tt := range []struct {
		name, version, want string
		spoil               func(r repository)
	}{
		{"not a version", "0.1.0", "usage", nil},
		{"too far ahead", "v0.3.0", "want one of v0.0.1 v0.1.0 v1.0.0", nil},
		{"the last release", "v0.1.0", "want one of v0.1.1 v0.2.0 v1.0.0", func(r repository) {
			r.run("git", "tag", "v0.1.0")
		}},
		{"file that is not committed", ok, "the tree has changes", func(r repository) {
			r.write("new.txt", "new")
		}},
		{"no branch", ok, "check out a branch", func(r repository) {
			r.run("git", "checkout", "-q", "--detach")
		}},
		{"nothing in the changelog", ok, "nothing under Unreleased", func(r repository) {
			r.write("CHANGELOG.md", "## Unreleased\n\n## v0.0.9\n\n- old\n").commit()
		}},
		{"tag of a nested module", ok, "a tag exists already: store/v0.1.0", func(r repository) {
			r.run("git", "tag", "store/v0.1.0")
		}},
		{"tag in a remote", ok, "a tag exists already: cmd/app/v0.1.0", func(r repository) {
			remote := r.t.TempDir()
			r.run("git", "clone", "-q", "--bare", ".", remote)
			r.run("git", "remote", "add", "origin", remote)
			r.run("git", "-C", remote, "tag", "cmd/app/v0.1.0")
		}},
		{"replaced module of others", ok, "replaces a module of others", func(r repository) {
			r.run("go", "mod", "edit", "-replace=example.com/other=../other", "store/go.mod")
			r.commit()
		}},
		{"module that is not released", ok, "demo, which is not released", func(r repository) {
			const demo = "github.com/example/root/examples/demo"
			r.write("store/demo.go", "package store\n\nimport _ \""+demo+"\"\n")
			r.run("go", "mod", "edit", "-require="+demo+"@v0.0.0",
				"-replace="+demo+"=../examples/demo", "store/go.mod")
			r.commit()
		}},
		{"module that does not build", ok, "go vet", func(r repository) {
			r.write("cmd/app/app.go", "package app\n\nvar one int = two\n").commit()
		}},
		{"repository that refuses a tag", ok, "does not take the commits", func(r repository) {
			r.write("hooks/reference-transaction", "#!/bin/sh\n! grep -q refs/tags/store/\n").commit()
			r.run("chmod", "+x", "hooks/reference-transaction")
			r.run("git", "config", "core.fileMode", "false")
			r.run("git", "config", "core.hooksPath", "hooks")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := small(t)
			if tt.spoil != nil {
				tt.spoil(r)
			}
			before, temp := r.state(), t.TempDir()
			out, err := r.with("TMPDIR="+temp).try("scripts/release", tt.version)
			if err == nil || !strings.Contains(out, tt.want) {
				t.Errorf("error %v, want %q in\n%s", err, tt.want, out)
			}
			if after := r.state(); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("temporary files %v, error %v", left, err)
			}
		})
	}
}
