package replay

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The limit that one log suggests is replayed on another one, as by itself.
func TestTheSuggestedLimitIsCheckedOnAnotherLog(t *testing.T) {
	last := strings.Repeat(line("192.0.2.1", 1, 1), 3) + line("192.0.2.2", 2, 1)
	next := line("192.0.2.3", 9, 1) + "nothing\n" + strings.Repeat(line("192.0.2.1", 10, 1), 8)
	nextFile := file(t, "next.log", next)
	c := Command{Files: []string{file(t, "last.log", last).Name}, Check: []string{nextFile.Name},
		Key: []string{"ip"}, IPv6Prefix: 64, Cost: mustCost(t, "1"), MaxKeys: tb.DefaultMaxKeys,
		Overflow: "forgive"}
	if err := c.Sweep.UnmarshalText([]byte("rate=1")); err != nil {
		t.Fatal(err)
	}
	if err := c.Suggest.UnmarshalText([]byte("0%")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.Run(context.Background(), cli.IO{Stdout: &out, Stderr: &out}); err != nil {
		t.Fatal(err)
	}
	want := "\nSuggested: 1/s, burst 3 at 0 %. It refuses 0 of 2 clients (0.0 %).\n"
	check := "\nOn " + nextFile.Name + ` (1 malformed),
from 2015-05-17 10:00:09 to 2015-05-17 10:00:10 UTC, this limit refuses 1 of 2 clients (50.0 %),
and 5 of 9 requests (55.6 %).

Refused most:

  refused  of requests   share  peak/s  longest run  key
        5            8  62.5 %       8            5  192.0.2.1  mostly /p
`
	if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), check) {
		t.Errorf("no %s or no %s in\n%s", want, check, &out)
	}
}

// A log of --check in which no request has a part of the key, or the field of the cost, is an error,
// as a replay of it by itself is.
func TestACheckWithoutAPartOfTheKey(t *testing.T) {
	s := &Suggestion{Limit: &SuggestedLimit{rate: mustRate(t, "1"), Burst: 2}}
	rep := &Report{Suggestion: s}
	other := []Input{file(t, "next.log", line("192.0.2.1", 1, 1))}
	for _, tt := range []struct{ key, want string }{
		{"ip", ""}, {"ip,user", "--check: --key user: no request has it"},
	} {
		c := Command{Key: []string{tt.key}, IPv6Prefix: 64, Cost: mustCost(t, "1"),
			MaxKeys: tb.DefaultMaxKeys, Overflow: "forgive", Suggest: newShare(1)}
		o, err := c.options()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := c.check(t.Context(), o, rep, other); err != nil {
			got = err.Error()
		}
		if got != tt.want || s.Check == nil || s.Check.Requests != 1 {
			t.Errorf("--key %s: %q, %+v, want %q", tt.key, got, s.Check, tt.want)
		}
	}
}

// An interrupt during the check is not taken for the end of its log. After an interrupt before,
// there is no check.
func TestAnInterruptedCheck(t *testing.T) {
	for _, before := range []bool{false, true} {
		s := &Suggestion{Limit: &SuggestedLimit{rate: mustRate(t, "1"), Burst: 2}}
		rep := &Report{Suggestion: s, Interrupted: before}
		ctx, cancel := context.WithCancel(t.Context())
		o, c := suggestOptions(t, "1%", ""), Command{}
		err := c.check(ctx, o, rep, []Input{{"next.log", func() (io.ReadCloser, error) {
			log := strings.NewReader(line("192.0.2.1", 1, 1))
			return io.NopCloser(io.MultiReader(log, cancelling(cancel))), nil
		}}})
		cancel()
		if err != nil || !rep.Interrupted || (s.Check == nil) != before {
			t.Errorf("before %v: interrupted %v, %v, %+v", before, rep.Interrupted, err, s.Check)
		}
	}
}
