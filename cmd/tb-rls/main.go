// Command tb-rls answers the rate limit requests of Envoy.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/rls"
)

func main() { program.Main() }

var program = cli.Program{
	Name:        "tb-rls",
	Description: "Answer the rate limit requests of Envoy.",
	Commands:    func() any { return new(commands) },
	Options:     []kong.Option{rls.Vars},
}

// commands is the one command of tb-rls.
type commands struct {
	rls.Command
	Version kong.VersionFlag `help:"Print the version."`
}
