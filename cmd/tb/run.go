package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policycmd"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/proxy"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/replay"
)

// Exit statuses. A mistake in the flags is told from a failure of the input, so that a
// script can tell what to do about it.
const (
	ok         = 0
	inputError = 1
	usageError = 2
)

// commands are the subcommands of tb.
type commands struct {
	Replay replay.Command    `cmd:"" help:"Say what a limit would have done to an access log."`
	Proxy  proxy.Command     `cmd:"" help:"Limit the requests to an HTTP server, by a policy."`
	Policy policycmd.Command `cmd:"" help:"Check or explain a policy."`
}

// run parses the arguments, runs the command they name and returns the exit status. It
// uses nothing of the process but what it is given. The end of ctx is an interrupt.
func run(ctx context.Context, args []string, std cli.IO) int {
	helped, help, status := false, std.Stdout, ok
	if len(args) == 0 {
		args, help, status = []string{"--help"}, std.Stderr, usageError
	}
	parser := kong.Must(&commands{},
		kong.Name("tb"),
		kong.Description("Try a token-bucket rate limit out, and apply it."),
		replay.Vars, replay.TextMapper, proxy.Vars, policycmd.Vars,
		kong.Writers(help, std.Stderr),
		kong.Exit(func(int) { helped = true }), // after printing the help
	)
	command, err := parser.Parse(args)
	switch {
	case helped:
		return status
	case err != nil:
		fmt.Fprintf(std.Stderr, "tb: %v\n", err)
		fmt.Fprintln(std.Stderr, "Run \"tb --help\", or \"tb replay --help\" and so on for all flags.")
		return usageError
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(std); err != nil {
		lines := strings.ReplaceAll(err.Error(), "\n", "\ntb: ") // of several errors joined
		fmt.Fprintf(std.Stderr, "tb: %s\n", lines)
		return inputError
	}
	return ok
}
