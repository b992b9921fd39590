// Command tb-proxy limits the requests to an HTTP server by a policy.
package main

import (
	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/proxy"
)

func main() { program.Main() }

var program = cli.Program{
	Name:        "tb-proxy",
	Description: "Limit the requests to an HTTP server by a policy.",
	Commands:    func() any { return new(commands) },
	Options:     []kong.Option{proxy.Vars},
}

// commands is the one command of tb-proxy.
type commands struct {
	proxy.Command
	Version kong.VersionFlag `help:"Print the version."`
}
