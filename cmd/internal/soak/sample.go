package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// sampleAll records a sample of each server at each tick, until ctx is done.
func (s *soak) sampleAll(ctx context.Context) {
	ticker := time.NewTicker(s.sample)
	defer ticker.Stop()
	last := s.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.now()
		for _, sv := range s.servers {
			s.sampleOne(ctx, sv, last, now)
		}
		last = now
	}
}

// sampleOne records a sample of a server.
func (s *soak) sampleOne(ctx context.Context, sv *server, last, now time.Duration) {
	seconds := (now - last).Seconds()
	r, faults := sv.take()
	for _, f := range faults {
		s.fault(sv.name, f)
	}
	slices.Sort(r.latencies)
	quantile := func(q float64) float64 {
		if len(r.latencies) == 0 {
			return 0
		}
		return r.latencies[int(q*float64(len(r.latencies)-1))].Seconds() * 1000
	}
	x := sample{
		Server: sv.name, Seconds: now.Seconds(), Answers: len(r.latencies), Granted: r.granted,
		P50: quantile(0.5), P99: quantile(0.99), P999: quantile(0.999),
		Hot: float64(r.hot) / seconds, Allowed: hotClients * sv.allowed(last, now) / seconds,
		Expected: r.expected, Unexpected: r.unexpected, Load: load(),
	}
	if m, err := sv.scrape(ctx); err == nil { // it may be between two starts
		x.RSS, x.Heap = m["process_resident_memory_bytes"], m["go_memstats_next_gc_bytes"]
		x.Descriptors, x.Goroutines = m["process_open_fds"], m["go_goroutines"]
	}
	s.records.add(func() { s.records.samples = append(s.records.samples, x) })
	sv.auditBefore(now - retired)
}

// load returns the load of the machine in the last minute.
func load() (n float64) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &n) // 0 if the file has another form
	}
	return n
}
