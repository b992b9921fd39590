package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Check has what the suggested limit does to other logs than the ones in which it was found.
type Check struct {
	Files []File `json:"files"`
	// First, Last, Requests and Keys are as in Report.
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Requests uint64    `json:"requests"`
	Keys     uint64    `json:"keys"`
	// Limit has the decisions of the limit, and Top the ten keys refused most.
	Limit Outcome  `json:"limit"`
	Top   []TopKey `json:"top"`
}

// check replays the logs of --check with the suggested limit of a report.
func (c *Command) check(ctx context.Context, o Options, rep *Report, logs []Input) error {
	s := rep.Suggestion
	if len(logs) == 0 || s == nil || s.Limit == nil || rep.Interrupted {
		return nil
	}
	o.Suggest, o.FirstLook, o.ByPath, o.Export, o.Picture = Share{}, false, false, "", false
	o.Rates, o.Bursts = []Rate{s.Limit.rate}, []Burst{Burst(s.Limit.Burst)}
	res, err := Run(ctx, o, c.schema(), logs)
	rep.Interrupted = res != nil && res.Report.Interrupted
	if res != nil && res.Report.Requests > 0 {
		r := &res.Report
		s.Check = &Check{r.Files, r.First, r.Last, r.Requests, r.Keys, r.Limits[0], r.Top}
		if missing := r.checkNames(); missing != nil {
			err = errors.Join(err, fmt.Errorf("--check: %w", missing))
		}
	}
	return err
}

// write writes what the limit does to the other logs.
func (c *Check) write(b *strings.Builder) {
	var names []string
	for _, f := range c.Files {
		names = append(names, f.Name+ifAny(f.Malformed, " (%s malformed)"))
	}
	l := &c.Limit
	fmt.Fprintf(b, "\nOn %s,\nfrom %s to %s UTC, this limit refuses %s of %s %s (%s),\n"+
		"and %s of %s %s (%s).\n", strings.Join(names, ", "), dateTime(c.First), dateTime(c.Last),
		grouped(l.KeysRefused), grouped(c.Keys), plural(c.Keys, "client", "clients"),
		percent(l.KeysRefusedShare), grouped(l.Refused), grouped(c.Requests),
		plural(c.Requests, "request", "requests"), percent(l.RefusedShare))
	if len(c.Top) > 0 {
		b.WriteString("\n")
	}
	writeTop(b, c.Top)
}
