// Command tb tries out a token-bucket rate limit and applies it. Its subcommands are:
//
//   - replay reports what a limit would have done to the requests of an access log.
//   - proxy limits the requests to a server by a policy.
//   - rls answers the rate limit requests of Envoy.
//   - policy checks and explains a policy.
//   - completion and man are for installing it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/completion"
	"github.com/seed-181794aa/ratelimit/cmd/internal/manpage"
	"github.com/seed-181794aa/ratelimit/cmd/internal/policycmd"
	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
	"github.com/seed-181794aa/ratelimit/cmd/internal/proxy"
	"github.com/seed-181794aa/ratelimit/cmd/internal/replay"
	"github.com/seed-181794aa/ratelimit/cmd/internal/rls"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	std := cli.IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(run(ctx, os.Args[1:], std))
}

// Exit statuses. They differ for mistakes in the flags and for errors of the input, so that
// a script can react to them.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// commands are the subcommands of tb.
type commands struct {
	Replay replay.Command    `cmd:"" help:"Report what a limit would have done to an access log."`
	Proxy  proxy.Command     `cmd:"" help:"Limit the requests to an HTTP server by a policy."`
	RLS    rls.Command       `cmd:"" name:"rls" help:"Answer the rate limit requests of Envoy."`
	Policy policycmd.Command `cmd:"" help:"Check or explain a policy."`

	Completion completion.Command    `cmd:"" help:"Print the script that completes tb in a shell."`
	Complete   completion.Candidates `cmd:"" hidden:"" passthrough:""`
	Man        manpage.Command       `cmd:"" help:"Print the manual page."`

	Version kong.VersionFlag `help:"Print the version."`
}

// run parses the arguments, runs their command and returns the exit status. Besides its
// parameters it uses nothing of the process. The end of ctx is an interrupt.
func run(ctx context.Context, args []string, std cli.IO) int {
	std.Stdout = printable.NewWriter(std.Stdout) // names and keys may have any characters
	printed, help, status := false, std.Stdout, exitOK
	if len(args) == 0 {
		args, help, status = []string{"--help"}, std.Stderr, exitUsage
	}
	parser := kong.Must(&commands{},
		kong.Name("tb"),
		kong.Description("Try out a token-bucket rate limit and apply it."),
		replay.Vars, replay.TextMapper, proxy.Vars, rls.Vars, policycmd.Vars,
		kong.Vars{"version": version()},
		kong.Writers(help, std.Stderr),
		kong.Exit(func(int) { printed = true }), // after printing the help or the version
	)
	command, err := parser.Parse(args)
	switch {
	case printed:
		return status
	case err != nil:
		fmt.Fprintf(std.Stderr, "tb: %s\n", printable.Escape(err.Error()))
		fmt.Fprintf(std.Stderr, "Run \"%s --help\" for all flags.\n", commandOf(err))
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(std); err != nil {
		lines := strings.ReplaceAll(err.Error(), "\n", "\ntb: ") // joined errors
		fmt.Fprintf(std.Stderr, "tb: %s\n", printable.Escape(lines))
		return exitError
	}
	return exitOK
}

// commandOf returns the command in whose arguments there is a mistake, such as tb proxy.
func commandOf(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		return parse.Context.Selected().FullPath()
	}
	return "tb"
}
