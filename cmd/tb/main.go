// Command tb tries a token-bucket rate limit out. Its subcommand replay says what a
// limit would have done to the requests of an access log.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/replay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	std := replay.IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(run(ctx, os.Args[1:], std))
}
