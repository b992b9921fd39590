// Command soak runs tb-proxy and tb-rls for a long time, each with its buckets in memory and in
// Redis, for scripts/soak. Clients keep a constant load on all four servers, and a schedule
// disturbs them: see disturbances. Each granted request is audited. At the end, the command prints
// tables, and exits with 1 if a server was not flat, granted too much or failed without a reason.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.Ltime)
	var c settings
	flag.StringVar(&c.programs, "programs", ".", "the directory of the programs tb-proxy and tb-rls")
	flag.StringVar(&c.dir, "out", "soak", "directory for the logs")
	flag.DurationVar(&c.duration, "for", time.Hour, "how long the servers run")
	flag.DurationVar(&c.sample, "sample", 10*time.Second, "time from one sample to the next")
	flag.DurationVar(&c.pause, "pause", time.Minute, "time from one event to the next")
	flag.IntVar(&c.rate, "rate", 300, "requests a second to each server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := run(ctx, c)
	stop()
	if err != nil {
		log.Fatal(err)
	}
	r.print(os.Stdout)
	if len(r.judge()) > 0 {
		os.Exit(1)
	}
}
