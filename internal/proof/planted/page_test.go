package planted

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/codehash"
)

// row is a row of the table of planted bugs: the package, the hash of its code, and the number of
// bugs.
var row = regexp.MustCompile(
	"(?m)^\\| `([a-z/]+)` \\| [0-9a-f]{8} \\| `?([0-9a-f]*)`? \\| (\\d+) \\|")

// stable are the packages that change seldom. The results of the page must be of their code as it
// is.
var stable = []string{"tb", "tb/cas", "tb/mutex", "lru", "adapt"}

// TestPageIsOfThisCode requires that the page has all bugs, and that they were planted in the code
// as it is.
func TestPageIsOfThisCode(t *testing.T) {
	was := map[string][]string{}
	for _, r := range row.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/mutants.md")), -1) {
		was[r[1]] = r[2:]
	}
	for _, p := range parts {
		now, err := codehash.Of(root, p.name)
		if err != nil {
			t.Fatal(err)
		}
		r := was[p.name]
		if r == nil || r[1] != strconv.Itoa(len(p.bugs)) {
			t.Errorf("docs/mutants.md: %s has %q, want %d bugs: run scripts/mutants planted %[1]s, "+
				"and put the result there", p.name, r, len(p.bugs))
		} else if r[0] != now && slices.Contains(stable, p.name) {
			t.Errorf("docs/mutants.md: the bugs were planted in another %s, whose hash is %s and not %s: "+
				"run scripts/mutants planted %[1]s, and put the result there", p.name, r[0], now)
		}
	}
}
