// Hierarchy limits the messages of a mail relay at four levels: each user, each tenant, the relay,
// and the gateway that the relay sends to. A message takes from all buckets, or from none, and a
// refusal names the level that binds. The gateway cannot take bursts, so its level delays messages.
// The demonstration has a clock of its own.
//
//	go run ./examples/hierarchy
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run sends some messages and writes the decision on each.
func run(w io.Writer) error {
	now := time.Now()
	quota, err := newQuota(func() time.Time { return now })
	if err != nil {
		return err
	}
	start := now
	for _, m := range []struct {
		after      time.Duration
		from       sender
		recipients int
	}{
		{0, sender{"acme", "ada"}, 10},
		{0, sender{"acme", "ada"}, 1},
		{0, sender{"acme", "bob"}, 10},
		{0, sender{"acme", "cy"}, 10},
		{0, sender{"beta", "ada"}, 10},
		{100 * time.Millisecond, sender{"beta", "ada"}, 10},
		{100 * time.Millisecond, sender{"beta", "bob"}, 4},
		{200 * time.Millisecond, sender{"beta", "cy"}, 6},
		{500 * time.Millisecond, sender{"beta", "cy"}, 6},
	} {
		now = start.Add(m.after)
		v, err := quota.take(m.from, m.recipients)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-5v %s of %s to %d: %s\n",
			m.after, m.from.user, m.from.tenant, m.recipients, describe(v))
	}
	return nil
}

func describe(v verdict) string {
	switch {
	case v.Allowed && v.delay > 0:
		return fmt.Sprintf("granted in %v, %d left for the %s", v.delay, v.Remaining, v.level)
	case v.Allowed:
		return fmt.Sprintf("granted, %d left for the %s", v.Remaining, v.level)
	case v.RetryAfter == ratelimit.Never:
		return "refused for ever by the " + v.level
	}
	return fmt.Sprintf("refused by the %s for %v", v.level, v.RetryAfter)
}
