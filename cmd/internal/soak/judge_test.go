package main

import (
	"strings"
	"testing"
)

// steady returns the records of a run of an hour in which nothing grows.
func steady() *records {
	r := &records{head: head{Seconds: 3600}, end: end{Seconds: 3600}}
	for i := range 360 {
		for _, name := range []string{"proxy-memory", "proxy-redis", "rls-memory", "rls-redis"} {
			wave := float64(i % 7)
			r.samples = append(r.samples, sample{
				Server: name, Seconds: float64(10 * i), RSS: 4e7 + 1e5*wave, Heap: 8e6 + 1e4*wave,
				Descriptors: 30 + wave, Goroutines: 50 + wave, Answers: 3000, P50: 1, P99: 2, P999: 3,
			})
		}
	}
	for _, name := range r.names() {
		r.audits = append(r.audits, audited{name, audit{Buckets: 1000, Grants: 10000, Worst: -0.5}})
	}
	return r
}

// Whatever goes wrong in a run makes the verdict fail, and names it.
func TestJudge(t *testing.T) {
	if failures := steady().judge(); len(failures) > 0 {
		t.Errorf("a steady run: %q", failures)
	}
	grow := func(server string, by func(s *sample)) func(r *records) {
		return func(r *records) {
			for i := range r.samples {
				if s := &r.samples[i]; s.Server == server {
					by(s)
				}
			}
		}
	}
	for want, plant := range map[string]func(r *records){
		"proxy-memory: resident memory, MB": grow("proxy-memory", func(s *sample) {
			s.RSS += 3000 * s.Seconds // 11 MB in an hour
		}),
		"rls-redis: goroutines": grow("rls-redis", func(s *sample) {
			s.Goroutines += float64(int(s.Seconds / 60)) // one in a minute
		}),
		"proxy-redis: descriptors": grow("proxy-redis", func(s *sample) {
			s.Descriptors += float64(int(s.Seconds / 120))
		}),
		"proxy-redis: 1 errors":                   func(r *records) { r.samples[5].Unexpected = 1 },
		"1 of 1000 buckets have granted too much": func(r *records) { r.audits[0].OverGrants = 1 },
		"rls-memory: no grants":                   func(r *records) { r.audits[2].Grants = 0 },
		"the run ended after 0 of 3600 seconds":   func(r *records) { r.end = end{} },
		"proxy-redis, after 7 s: it does not answer": func(r *records) {
			r.faults = append(r.faults, fault{7, "proxy-redis", "it does not answer"})
		},
	} {
		r := steady()
		plant(r)
		if failures := r.judge(); len(failures) != 1 || !strings.Contains(failures[0], want) {
			t.Errorf("%q, want %s", failures, want)
		}
	}
}

// What is not in the second half of a run is not part of the verdict: servers are started again in
// the first half, and their tables fill.
func TestJudgeLeavesOutTheFirstHalf(t *testing.T) {
	r := steady()
	for i := range r.samples {
		if s := &r.samples[i]; s.Seconds < 1800 {
			s.RSS /= 2
		}
	}
	if failures := r.judge(); len(failures) > 0 {
		t.Error(failures)
	}
}
