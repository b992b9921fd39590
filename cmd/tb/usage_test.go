package main

import (
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		args string // separated by commas
		want string // text that the message must contain
	}{
		{"", "replay"},
		{"proxi", "proxi"},
		{"replay,--rate=5,--burst=1", "FILE"},
		{"replay,--burst=1,-", "--rate"},
		{"replay,--rate=5,-", "--burst"},
		{"replay,--rate=x,--burst=1,-", "300/m"},
		{"replay,--rate=5,--burst=0,-", "1 to 1073741824"},
		{"replay,--rate=5,--burst=1,--key=a/b,-", "ip, user, path, host"},
		{"replay,--rate=5,--burst=1,--ipv6-prefix=0,-", "1 to 128"},
		{"replay,--rate=5,--burst=1,--ipv6-prefix=129,-", "1 to 128"},
		{"replay,--rate=5,--burst=1,--max-keys=0,-", "1 to 1073741824"},
		{"replay,--rate=5,--burst=1,--field=when=ts,-",
			"time, ip, forwarded, user, host, method, uri, query, status, agent"},
		{"replay,--rate=5,--burst=1,--format=combined,-", `--format: "combined" has no time`},
		{"replay,--rate=5,--burst=1,--format=$time_local $status,-", "has no client"},
		{"replay,--rate=5,--burst=1,--format=$time_local$status,-", "text after each variable"},
		{"replay,--rate=5,--burst=1,--sample,-", "either FILE or --sample"},
		{"replay,--rate=5,--burst=1,--html,--json,-", "--html"},
		{"replay,--rate=5,--burst=1,--html=-x,-", "--html=-x: want the name of a file"},
		{"replay,--rate=5,--burst=1,--key=,-", "ip, user, path, host"},
		{"replay,--rate=5,--burst=1,--nonsense,-", "--nonsense"},
		{"replay,--rate=5,--burst=1,--trusted-proxies=10.0.0.0/33,-", "10.0.0.0/8"},
		{"replay,--rate=5,--burst=1,--algorithm=bucket,-", "fixed-window, sliding-log"},
		{"replay,--rate=1/d,--burst=60000,--algorithm=gcra,-", "at most 146 years"},
		{"replay,--suggest=1,-", "want a percentage"},
		{"replay,--suggest=51%,-", "0% to 50%"},
		{"replay,--suggest=1%,--burst=5,-", "--burst and --suggest can't be used together"},
		{"replay,--rate=1,--burst=1,--by-path,-", "--by-path and --export: want --suggest"},
		{"replay,--policy=x,--export=nginx,-", "--by-path and --export: want --suggest"},
		{"replay,--export=apache,-", `one of "policy","nginx"`},
		{"replay,--policy=x,--rate=5,-", "--rate and --policy can't be used together"},
		{"replay,--policy=x,--suggest=1%,-", "--suggest and --policy can't be used together"},
		{"replay,--policy=x,--key=path,-", "either --policy or --key"},
		{"policy", "check"},
		{"policy,check", "<file>"},
		{"policy,explain", "<file>"},
		{"policy,explain,-,--request=GET", "GET /x?y=1"},
		{"policy,explain,-,-H,X-Api-Key", "X-Api-Key: k1"},
		{"policy,explain,-,--from=me", "--from"},
	} {
		args := strings.FieldsFunc(tt.args, func(r rune) bool { return r == ',' })
		status, stdout, stderr := tb(t, validLine, args...)
		if status != 2 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want 2 and %q",
				tt.args, status, stdout, stderr, tt.want)
		}
	}
}

// A message names the command whose help has the flags.
func TestUsageErrorsNameTheHelpOfTheirCommand(t *testing.T) {
	for args, want := range map[string]string{
		"replay,--nonsense": "tb replay", "policy,check": "tb policy check", "proxi": "tb",
	} {
		_, _, stderr := tb(t, "", strings.Split(args, ",")...)
		if want = "Run \"" + want + " --help\" for all flags.\n"; !strings.HasSuffix(stderr, want) {
			t.Errorf("%s: stderr %q, want %s", args, stderr, want)
		}
	}
}

// A message states a mistake once, and in the terms of the flags.
func TestUsageErrorsAreShort(t *testing.T) {
	for flag, foreign := range map[string]string{
		"--rate=0": "Limit.Tokens", "--rate=1/300y": "Limit.Per", "--max-keys=0": "WithMaxKeys",
	} {
		_, _, stderr := tb(t, validLine, "replay", "--rate=5", "--burst=1", flag, "-")
		if strings.Contains(stderr, foreign) || strings.Count(stderr, "want") != 1 {
			t.Errorf("%s: %s", flag, stderr)
		}
	}
	_, _, stderr := tb(t, validLine, "replay", "--suggest=1%", "--algorithm=gcra", "-")
	if strings.Count(stderr, "together") != 1 {
		t.Error(stderr)
	}
}

func TestNamesInAKeyMayNotBeEmpty(t *testing.T) {
	for _, key := range []string{",", ",ip", "ip,,path"} {
		status, stdout, stderr := tb(t, validLine, "replay", "--rate=5", "--burst=1", "--key", key, "-")
		if status != 2 || stdout != "" || !strings.Contains(stderr, `key "": want ip, user`) {
			t.Errorf("--key %q: status %d, stdout %q, stderr %q", key, status, stdout, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	status, stdout, stderr := tb(t, "", "replay", "--help")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "--ipv6-prefix") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, stderr = tb(t, "")
	if status != 2 || stdout != "" || !strings.Contains(stderr, "replay") ||
		!strings.HasPrefix(stderr, "Usage: tb <command>") {
		t.Errorf("without arguments: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
