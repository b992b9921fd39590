// Package scripts tests the scripts of the repository.
package scripts

import (
	"flag"
	"testing"
)

var (
	all   = flag.Bool("all", false, "test the scripts that make commits, tags and programs")
	whole = flag.Bool("release", false, "release the whole tree and use it: takes minutes")
)

// Users install the commands and import the modules of a release as from a public proxy, in a
// place that has neither the clone nor its workspace.
func TestReleasedModulesAreUsable(t *testing.T) {
	if !*whole {
		t.Skip("builds the program and others with other flags: run with -release")
	}
	r := newRepository(t, `git clone -q --no-tags "$tree" .`)
	r.run(`git remote remove origin
		scripts/release v0.1.0
		grep cmd@v0.1.0 dist/v0.1.0/windows-arm64/tb.exe.cdx.json
		# Three programs and their bills for six platforms.
		[[ $(cd dist/v0.1.0; sha256sum --check SHA256SUMS | grep -c ': OK') == 36 ]]
		for dir in . cmd tb/redis; do
			for workspace in "" off; do
				(cd $dir; export GOWORK=$workspace; go list -m all >/dev/null; go mod download)
			done
		done
		[[ -z $(git status --porcelain) ]]`)
	repository{t, t.TempDir(), r.dir}.run(`user=$PWD
		cd "$tree"
		# The commit behind the release has a version of its own.
		go build -buildvcs=true -trimpath -o $user ./cmd/tb
		$user/tb --version | grep '^tb v0.1.1-0.'

		# The go command makes the zip files of a proxy out of the tags.
		root=$(GOWORK=off go list -m)
		ordinary=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
		modules=$(git tag --points-at HEAD^ | sed "s,^,$root/,; s,/v0,@v0,")
		export GOFLAGS='-modcacherw -trimpath' GIT_CONFIG_COUNT=1
		export GIT_CONFIG_KEY_0=url.file://$tree.insteadOf GIT_CONFIG_VALUE_0=https://$root
		cd $user
		export GOMODCACHE=$user/published GOPROXY=$ordinary
		GOPRIVATE=$root go mod download $modules

		# The programs of the tag have the same bytes if they are built in another directory.
		git clone -q --branch v0.1.0 "$tree" tag
		GOPRIVATE=$root GOWORK=off GOOS=linux GOARCH=arm64 tag/scripts/build again
		diff -r again "$tree/dist/v0.1.0/linux-arm64"

		export GOPROXY=file://$user/published/cache/download,$ordinary GOSUMDB=off
		export GOMODCACHE=$user/modules GOBIN=$user/bin
		for program in tb tb-proxy tb-rls; do
			go install $root/cmd/$program@latest
			bin/$program --version | grep "^$program v0.1.0,"
		done
		go mod init example.com/app
		cat >main.go <<end
			package main

			import (
				"fmt"

				"$root"
				_ "$root/caddy"
				_ "$root/grpclimit"
				_ "$root/metrics"
				"$root/tb/redis"
			)

			func main() {
				_, err := redis.New(nil, ratelimit.Limit{})
				fmt.Println(err)
			}
end
		for module in $modules; do go get ${module%@*}@latest; done
		go run . | grep 'client is nil'`)
}

// The modules of a tagged commit require each other at the version. The modules of the next commit
// are taken from the tree again.
func TestReleasesFollowEachOther(t *testing.T) {
	t.Parallel()
	r := small(t)
	for _, version := range []string{"v0.1.0", "v1.0.0"} {
		r.run("version=" + version + `
			scripts/release $version |
				grep "origin main store/$version cmd/app/$version && git push origin $version"
			[[ -z $(git status --porcelain) ]]
			[[ $(git tag --points-at HEAD^) == cmd/app/$version$'\n'store/$version$'\n'$version ]]
			for module in store cmd/app examples/demo; do
				git show $version:$module/go.mod | grep "github.com/example/root $version"
				grep "github.com/example/root $version" $module/go.mod
				grep replace $module/go.mod
			done
			# Only a module that is not released takes others from the tree.
			[[ $(git grep -l replace $version -- '*go.mod') == $version:examples/demo/go.mod ]]
			[[ $(git show $version:cmd/app/go.sum | grep -c " $version") == 4 ]] # of two modules
			grep -A 2 '^## Unreleased$' CHANGELOG.md | grep "^## $version, 20"`)
		r.commit(`sed -i 's/^## Unreleased$/&\n\n- new/' CHANGELOG.md`)
	}
}

// A failure at any step leaves the commits, tags and files as they were, and no temporary files.
func TestReleaseThatFailsChangesNothing(t *testing.T) {
	const ok, commit = "v0.1.0", "\ngit add --all; git commit -q -m change"
	for _, tt := range []struct{ name, version, want, spoil string }{
		{"not a version", "0.1.0", "usage", ""},
		{"too far ahead", "v0.3.0", "want one of v0.0.1 v0.1.0 v1.0.0", ""},
		{"the last release", "v0.1.0", "want one of v0.1.1 v0.2.0 v1.0.0", "git tag v0.1.0"},
		{"file that is not committed", ok, "the tree has changes", "touch new.txt"},
		{"no branch", ok, "check out a branch", "git checkout -q --detach"},
		{"nothing in the changelog", ok, "nothing under Unreleased",
			"printf '## Unreleased\n\n## v0.0.9\n\n- old\n' >CHANGELOG.md" + commit},
		{"tag of a nested module", ok, "a tag exists already: store/v0.1.0", "git tag store/v0.1.0"},
		{"tag in a remote", ok, "a tag exists already: cmd/app/v0.1.0",
			"git tag cmd/app/v0.1.0; git clone -q --bare . .git/remote; git tag -d cmd/app/v0.1.0" +
				"\ngit remote add origin .git/remote"},
		{"replaced module of others", ok, "replaces a module of others",
			"go mod edit -replace=example.com/other=../other store/go.mod" + commit},
		{"module that is not released", ok, "demo, which is not released",
			"demo=github.com/example/root/examples/demo; cd store" +
				"\necho \"package store; import _ \\\"$demo\\\"\" >demo.go" +
				"\ngo mod edit -require=$demo@v0.0.0 -replace=$demo=../examples/demo" + commit},
		{"module that does not build", ok, "go vet",
			"echo 'package app; var one int = two' >cmd/app/app.go" + commit},
		{"repository that refuses a tag", ok, "does not take the commits",
			"git config core.hooksPath .git/refusing; mkdir .git/refusing; cd .git/refusing" +
				"\nprintf '#!/bin/sh\n! grep -q refs/tags/store/' >reference-transaction; chmod +x *"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := small(t)
			r.run(tt.spoil)
			r.run("version=" + tt.version + " want='" + tt.want + `'
				state() { git rev-parse HEAD; git for-each-ref; git status --porcelain; git diff HEAD; }
				before=$(state) temporary=$PWD/.git/temporary
				mkdir "$temporary"
				out=$(! TMPDIR=$temporary scripts/release $version 2>&1)
				grep -F "$want" <<<"$out"
				diff <(echo "$before") <(state)
				rmdir "$temporary" # which is empty`)
		})
	}
}
