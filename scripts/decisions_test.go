package scripts

import "testing"

// A run begins behind the programs of the runs before it, but a range that fails is run again. A
// line counts for as long as the code that tb/cas and tb/mutex link is the same.
func TestDecisionsContinueTheLedger(t *testing.T) {
	newRepository(t, `git clone -q "$tree" .`).run(`
		go() { # does not compile again for the clone what go test compiles for the tree
			if [[ $1 == test ]]; then command go -C "$tree" "$@"; else command go "$@"; fi
		}
		export -f go
		decisions() { PROGRAMS=${programs:-999} scripts/decisions "$1" 2>&1; }
		results() { tail -n +2 fuzz/decisions.tsv | cut -f 10 | paste -sd ' '; }
		commit() { git add --all && git commit -q -m change; }
		ok='ok ok ok ok' failed='failed failed failed failed'
		sed -i '2,$d' fuzz/decisions.tsv

		decisions 1s
		[[ $(results) == "$ok" ]]
		out=$(! programs=none decisions 1s)
		[[ $(results) == "$ok $failed" ]]
		decisions 1s
		[[ $(results) == "$ok $failed $ok" ]]
		awk -F '\t' 'NR > 1 && ($5 != next_seed[$4] + 0 || $7 != $6 - $5 + 1 || !$7 != !$8) {exit 1}
			{next_seed[$4] = $6 + 1}' fuzz/decisions.tsv

		sum=$(awk -F '\t' '{n += $8} END {print n}' fuzz/decisions.tsv)
		echo '// A comment.' >>tb/cas/doc.go && commit
		decisions 0s | grep "^$sum decisions of the present code"
		echo 'var more int' >>tb/cas/doc.go
		out=$(! decisions 0s)
		grep 'commit them first' <<<"$out"
		commit
		decisions 0s | grep '^0 decisions of the present code'`)
}
