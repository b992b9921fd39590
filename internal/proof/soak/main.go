// Command soak runs tb proxy and tb-rls for a long time, each with its buckets in memory and in
// Redis, for scripts/soak. Clients keep a constant load on all four servers, and a schedule
// disturbs them: see disturbances. Each granted request is audited.
//
// The file records.jsonl in the directory of -out has a line for each sample, event and audit.
// At the end, or with -judge, the command reads the file, prints tables, and
// exits with 1 if a server was not flat, granted too much or failed without a reason.
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
	flag.StringVar(&c.programs, "programs", ".", "the directory of the programs tb and tb-rls")
	flag.StringVar(&c.dir, "out", "soak", "directory for the records and the logs")
	flag.DurationVar(&c.duration, "for", time.Hour, "how long the servers run")
	flag.DurationVar(&c.sample, "sample", 10*time.Second, "time from one sample to the next")
	flag.DurationVar(&c.pause, "pause", time.Minute, "time from one event to the next")
	flag.IntVar(&c.rate, "rate", 300, "requests a second to each server")
	judge := flag.Bool("judge", false, "only judge the records of an earlier run")
	flag.Parse()
	if !*judge {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := run(ctx, c)
		stop()
		if err != nil {
			log.Fatal(err)
		}
	}
	r, err := readRecords(c.dir)
	if err != nil {
		log.Fatal(err)
	}
	r.print(os.Stdout)
	if len(r.judge()) > 0 {
		os.Exit(1)
	}
}
