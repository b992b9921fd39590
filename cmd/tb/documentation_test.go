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

var argument = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// arguments returns the arguments of a command in a document, with the name of a policy.
func arguments(command, policy string) (args []string) {
	for _, arg := range argument.FindAllString(command, -1) {
		args = append(args, strings.ReplaceAll(strings.Trim(arg, `"'`), "policy.json", policy))
	}
	return args
}

// The commands in docs/policy.md run on its first policy.
func TestThePolicyCommandsInTheDocumentsRun(t *testing.T) {
	doc, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(doc), "\n```json\n")
	first, _, _ = strings.Cut(first, "```")
	policy := testkit.File(t, "policy.json", first)
	commands := regexp.MustCompile(`(?m)^    tb (policy .*)$`).FindAllStringSubmatch(string(doc), -1)
	if len(commands) < 2 {
		t.Errorf("%d commands, want at least 2", len(commands))
	}
	for _, m := range commands {
		if status, _, stderr := tb(t, "", arguments(m[1], policy)...); status != 0 {
			t.Errorf("tb %s: status %d: %s", m[1], status, stderr)
		}
	}
}

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
		_, stdout, stderr := tb(t, "", arguments(command, policy)...)
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
