package scripts

import (
	"strings"
	"testing"
)

// serve is a function of bash that starts a proxy, makes a request, and stops the proxy.
const serve = `
	serve() { # COMMAND...
		coproc exec "$@" --listen=127.0.0.1:0 --admin=off --shutdown-delay=0s 2>log
		trap "kill $! || cat log" EXIT
		read -r line <&"${COPROC[0]}"
		curl -sfi "$(grep -o 'http://127[.:0-9]*' <<<"$line")" | grep -i '^ratelimit:'
		trap - EXIT
		kill $! && wait $! || { cat log && false; }
	}
`

// The programs are tested as they are distributed: as static files, in the image, and as a service.
func TestProgramsAsDistributed(t *testing.T) {
	if !*whole {
		t.Skip("builds the programs: run with -release")
	}
	r := newRepository(t, `git init -q; "$tree/scripts/build" root`)
	for name, commands := range map[string]string{
		// A larger program would take longer to start in a cluster, and would need a reason.
		"static and small": `
			{ ldd root/tb || true; } 2>&1 | grep 'not a dynamic executable'
			{ go tool nm root/tb || true; } 2>&1 | grep 'no symbols'
			test "$(stat -c %s root/tb)" -le 35000000`,
		// The root has nothing else, and the user of the image has no rights.
		"in an empty root": serve + `
			[[ $(id -u) == 0 ]] || { echo 'skip: only root can change the root'; exit; }
			grep -x 'USER 65532:65532' "$tree/Dockerfile"
			chmod 755 root
			inside=(chroot --userspec=65532:65532 root)
			"${inside[@]}" /tb replay --sample --rate=5 --burst=10
			serve "${inside[@]}" /tb-proxy`,
		// The commands of the unit check the policy, and keep the state where the unit has it.
		"as a service": serve + `
			sed "s,/usr/local/bin,$PWD/root,; s,/etc/tb,$PWD,; s,/var/lib/tb,$PWD," \
				"$tree/packaging/tb-proxy.service" >tb-proxy.service
			echo '{"name": "per-address", "limit_keys": ["ip:address"],
				"algorithm_config": {"tokens_per_second": 5, "burst": 10}}' >policy.json
			line() { sed -n "s/^$1=//p" tb-proxy.service; }
			$(line ExecStartPre)
			eval "export $(line Environment)"
			eval "serve $(line ExecStart)"
			test -s buckets.json
			grep -x 'StateDirectory=tb' tb-proxy.service
			! grep '^ProcSubset=' tb-proxy.service || false # Go reads more of /proc
			grep -x "ExecReload=/bin/sh -c 'kill -HUP \$MAINPID'" tb-proxy.service
			type systemd-analyze || { echo 'skip: systemd-analyze is not installed'; exit; }
			[[ -z $(systemd-analyze verify --man=no ./tb-proxy.service 2>&1) ]]
			# It is open by 1.5 of 10 at most, where 0 is locked up.
			systemd-analyze security --offline=yes --threshold=15 ./tb-proxy.service`,
	} {
		t.Run(name, func(t *testing.T) {
			if out := (repository{t, r.dir, r.tree}).run(commands); strings.Contains(out, "skip: ") {
				t.Skip(out)
			}
		})
	}
}

// The layer of the image with the modules of others needs the go.mod of each module of this
// repository that the programs require.
func TestImageDownloadsModulesFirst(t *testing.T) {
	newRepository(t, "git init -q").run(`cd "$tree"
		layer=$(sed '/mod download/q' Dockerfile)
		for dir in $(sed -n 's/^replace .* => //p' cmd/go.mod); do
			grep "^COPY $(realpath --relative-to=. "cmd/$dir/go.mod") " <<<"$layer"
		done`)
}

// NOTICE has the licences of what is linked into the programs, whatever the platform is.
func TestNotice(t *testing.T) {
	newRepository(t, "git init -q").run(`"$tree/scripts/notice" NOTICE
		diff "$tree/cmd/NOTICE" NOTICE`)
}
