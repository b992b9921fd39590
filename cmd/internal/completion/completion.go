// Package completion is `tb completion`, which completes the arguments of tb in a shell.
package completion

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// Command is `tb completion`.
type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

//go:embed tb.bash tb.zsh tb.fish
var scripts embed.FS

// Run prints the script for the shell. The script calls Candidates at each completion, so that it
// completes what the installed program takes.
func (c *Command) Run(std cli.IO) error {
	script, err := scripts.ReadFile("tb." + c.Shell)
	if err != nil {
		return err
	}
	_, err = std.Stdout.Write(script)
	return err
}

// Help returns how to use the script.
func (*Command) Help() string {
	return `Prints a script that completes commands, flags, their values and file names. In the
configuration of the shell:
  bash  source <(tb completion bash)
  zsh   source <(tb completion zsh), after compinit
  fish  tb completion fish | source`
}

// Candidates is `tb complete`, which the scripts call with the words up to the cursor.
type Candidates struct {
	Words []string `arg:"" optional:""`
}

// Run prints the words that can take the place of the last one, with the first sentence of their
// help behind a tab. It prints nothing where any text or a file name may stand.
func (c *Candidates) Run(ctx *kong.Context, std cli.IO) error {
	if len(c.Words) == 0 {
		return nil
	}
	var b strings.Builder
	for _, c := range candidates(ctx.Model.Node, c.Words) {
		b.WriteString(c.word)
		if help, _, _ := strings.Cut(c.help, ". "); help != "" {
			fmt.Fprintf(&b, "\t%s", strings.TrimSuffix(help, "."))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(std.Stdout, b.String())
	return err
}
