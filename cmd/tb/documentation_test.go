package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

const documentedPolicy = `{"rules": [
	{"name": "per-address", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 5, "burst": 10}},
	{"name": "tight", "mode": "shadow", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 1, "burst": 10}}]}`

// The reports in docs/replay.md are what the commands above them print. "…" stands for any lines.
func TestTheReportsInTheDocumentsAreTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("replays half a million lines")
	}
	doc, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```\n\\$ go run ./cmd/tb (.*?)\n```").
		FindAllStringSubmatch(strings.ReplaceAll(string(doc), "\\\n", ""), -1)
	if len(blocks) < 3 {
		t.Fatalf("only %d commands", len(blocks))
	}
	policy := testkit.File(t, "policy.json", documentedPolicy)
	for _, block := range blocks {
		command, report, _ := strings.Cut(block[1], "\n")
		var args []string
		for _, arg := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(command, -1) {
			args = append(args, strings.ReplaceAll(strings.Trim(arg, `"`), "policy.json", policy))
		}
		_, stdout, stderr := tb(t, "", args...)
		if stderr != "" {
			t.Errorf("%s: %s", command, stderr)
		}
		lines, skip := strings.Split(stdout, "\n"), false
		for want := range strings.SplitSeq(report, "\n") {
			if want == "…" {
				skip = true
				continue
			}
			i := slices.Index(lines, want)
			if i < 0 || i > 0 && !skip {
				t.Errorf("%s: no %q, or not there, in\n%s", command, want, stdout)
				break
			}
			lines, skip = lines[i+1:], false
		}
	}
}
