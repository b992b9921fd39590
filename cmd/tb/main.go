// Command tb tries out token-bucket rate limits. Its subcommands are:
//
//   - replay reports what a limit would have done to the requests of an access log.
//   - policy checks and explains a policy.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/policycmd"
	"github.com/seed-181794aa/ratelimit/cmd/internal/replay"
)

func main() { program.Main() }

var program = cli.Program{
	Name:        "tb",
	Description: "Try out token-bucket rate limits. The programs tb-proxy and tb-rls apply them.",
	Commands:    func() any { return new(commands) },
	Options:     []kong.Option{replay.Vars, policycmd.Vars},
}

// commands are the subcommands of tb.
type commands struct {
	Replay replay.Command    `cmd:"" help:"Report what a limit would have done to an access log."`
	Policy policycmd.Command `cmd:"" help:"Check or explain a policy."`

	Version kong.VersionFlag `help:"Print the version."`
}
