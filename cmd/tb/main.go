// Command tb tries a token-bucket rate limit out, and applies it. Its subcommand replay says
// what a limit would have done to the requests of an access log, proxy limits those to a
// server by a policy, and policy checks and explains one.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	std := cli.IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(run(ctx, os.Args[1:], std))
}
