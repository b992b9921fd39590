package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var everything = flag.Bool("all", false, "run the servers, too")

// A run in which each event happens once: no key is granted too much, and all events end.
func TestEachEventOnce(t *testing.T) {
	if !*everything {
		t.Skip("runs the servers for half a minute: -all")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip("redis-server is not installed (Debian: apt-get install redis-server)")
	}
	dir := t.TempDir()
	c := settings{
		programs: dir, dir: dir, rate: 100,
		duration: time.Hour, sample: 100 * time.Millisecond, pause: 400 * time.Millisecond,
	}
	build := exec.Command("go", "build", "-o", c.programs, "./tb", "./tb-proxy", "./tb-rls")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := newSoak(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	all := s.disturbances()
	s.underLoad(ctx, func(context.Context) {
		for _, d := range all {
			s.happen(ctx, d)
		}
		cancel()
	})
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	r := s.records
	var report strings.Builder
	r.print(&report)
	t.Log(report.String())
	if len(r.events) != len(all) || len(r.audits) != len(s.servers) {
		t.Errorf("%d events and %d audits, want %d and %d", len(r.events), len(r.audits), len(all),
			len(s.servers))
	}
	for _, a := range r.audits {
		if a.Grants == 0 || a.OverGrants > 0 {
			t.Errorf("%+v", a)
		}
	}
	// A busy machine may be too slow for a request. It delays events, and does not make them fail.
	for _, f := range r.faults {
		if strings.HasPrefix(f.Server, "the event") {
			t.Errorf("%+v", f)
		}
	}
}
