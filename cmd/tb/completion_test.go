package main

import (
	"bufio"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var everything = flag.Bool("all", false, "press Tab in shells: takes half a minute")

// shells are interactive shells whose prompt is READY. They write the line that is being edited to
// the file "line" when they read ^T.
var shells = map[string]struct{ command, config string }{
	"bash": {"bash --rcfile config -i", `PS1=READY
source <(tb completion bash)
dump() { printf '%s\n' "$READLINE_LINE" >line; }
bind -x '"\C-t": dump'
`},
	"zsh": {"zsh -f -i -c 'source ./config; exec zsh -i'", `ZDOTDIR=$PWD
export ZDOTDIR
cat >.zshrc <<'END'
PROMPT=READY
autoload -U compinit && compinit -D
source <(tb completion zsh)
dump() { print -r -- "$BUFFER" >line }
zle -N dump
bindkey '^T' dump
END
`},
	"fish": {"fish --no-config -C 'source config'", `function fish_prompt; echo READY; end
tb completion fish | source
bind \ct 'commandline >line'
`},
}

func TestCompletion(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"", "replay proxy rls policy completion man"},
		{"p", "proxy policy"},
		{"x", ""},
		{"rls --redis-f", "--redis-failure"},
		{"policy ", "check explain"},
		{"policy check ", ""},
		{"completion ", "bash zsh fish"},
		{"proxy --max", "--max-keys --max-key-length"},
		{"proxy --vers", "--version"},
		{"proxy --no-", "--no-preserve-host"},
		{"proxy --overflow ", "forgive refuse"},
		{"proxy --overflow=r", "--overflow=refuse"},
		{"proxy --overflow = r", "--overflow=refuse"}, // as Bash splits it
		{"proxy --overflow =", "--overflow=forgive --overflow=refuse"},
		{"replay --export ", "policy caddy nginx envoy"},
		{"proxy --listen ", ""},
		{"proxy --h2c --overflow ref", "refuse"},
		{"proxy --overflow --h2", ""},
		{"proxy --nonsense= --h2", "--h2c"},
		{"policy explain --header x --req", "--request"},
		{"policy explain -H --req", ""},
	} {
		args := append([]string{"complete"}, strings.Split(tt.words, " ")...)
		status, stdout, stderr := tb(t, "", args...)
		var got []string
		for line := range strings.Lines(stdout) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			got = append(got, word)
		}
		if status != 0 || stderr != "" || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: status %d, stderr %q, words %q, want %s",
				tt.words, status, stderr, got, tt.want)
		}
	}
}

// The line that is being edited has what the user sees after the Tab key.
func TestCompletionInShells(t *testing.T) {
	if !*everything {
		t.Skip("starts a shell for each case: run with -all")
	}
	program := build(t)
	for shell, s := range shells {
		t.Run(shell, func(t *testing.T) {
			for _, needed := range []string{shell, "script"} {
				if _, err := exec.LookPath(needed); err != nil {
					t.Skip(needed + " is not installed")
				}
			}
			dir := t.TempDir()
			write(t, filepath.Join(dir, "config"), s.config)
			write(t, filepath.Join(dir, "gateway-policy.json"), "{}")
			for typed, want := range map[string]string{
				"prox\t":                          "tb proxy",
				"policy exp\t":                    "tb policy explain",
				"proxy --overf\t":                 "tb proxy --overflow",
				"proxy --overflow ref\t":          "tb proxy --overflow refuse",
				"proxy --overflow=ref\t":          "tb proxy --overflow=refuse",
				"proxy --no-pres\t":               "tb proxy --no-preserve-host",
				"completion fi\t":                 "tb completion fish",
				"policy check gatew\t":            "tb policy check gateway-policy.json",
				"proxy --policy gatew\t":          "tb proxy --policy gateway-policy.json",
				"proxy --policy=gatew\t":          "tb proxy --policy=gateway-policy.json",
				"proxy --policy gatew\t --shar\t": "tb proxy --policy gateway-policy.json --shared-secret",
			} {
				cmd := exec.CommandContext(t.Context(), "script", "-qec", s.command, "/dev/null")
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+dir,
					"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
				if err := typeKeys(cmd, "tb "+typed+"\x14\x15exit\r"); err != nil {
					t.Fatal(err)
				}
				line, err := os.ReadFile(filepath.Join(dir, "line"))
				got := strings.Join(strings.Fields(string(line)), " ")
				if err != nil || got != want {
					t.Errorf("%q became %q, error %v; want %q", typed, got, err, want)
				}
			}
		})
	}
}

// typeKeys runs a shell in a terminal and types keys when its prompt is there.
func typeKeys(cmd *exec.Cmd, keys string) error {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	output := bufio.NewReader(stdout)
	_, prompt := output.ReadString('Y')
	_, typed := io.WriteString(stdin, keys)
	_, drained := io.Copy(io.Discard, output)
	return errors.Join(prompt, typed, drained, cmd.Wait())
}

// build builds tb and returns the name of the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tb")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
