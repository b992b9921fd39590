package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// measure is what must be flat: in the second half of a run, it may grow by the least amount or by
// a tenth of its mean.
type measure struct {
	name  string
	of    func(s sample) float64
	unit  float64
	least float64 // in units
}

var measures = []measure{
	{"resident memory, MB", func(s sample) float64 { return s.RSS }, 1e6, 4},
	{"heap, MB", func(s sample) float64 { return s.Heap }, 1e6, 4},
	{"descriptors", func(s sample) float64 { return s.Descriptors }, 1, 10},
	{"goroutines", func(s sample) float64 { return s.Goroutines }, 1, 15},
}

// second returns the values in the second half of a run, with their times. It leaves out samples
// without memory.
func (m measure) second(samples []sample, duration float64) (seconds, values []float64) {
	for _, s := range samples {
		if s.RSS > 0 && s.Seconds > duration/2 {
			seconds, values = append(seconds, s.Seconds), append(values, m.of(s)/m.unit)
		}
	}
	return seconds, values
}

// trend returns the mean of values, and by how much the line of least squares rises from the first
// to the last.
func trend(x, y []float64) (mean, drift float64) {
	if len(x) < 2 {
		return math.NaN(), math.NaN()
	}
	n := float64(len(x))
	var sumX, sumY, sumXX, sumXY float64
	for i := range x {
		dx := x[i] - x[0]
		sumX, sumY, sumXX, sumXY = sumX+dx, sumY+y[i], sumXX+dx*dx, sumXY+dx*y[i]
	}
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	return sumY / n, slope * (x[len(x)-1] - x[0])
}

// isFlat reports whether a drift is within the bound.
func (m measure) isFlat(mean, drift float64) bool {
	return drift <= max(m.least, mean/10)
}

// names returns the servers in the order of their samples.
func (r *records) names() (all []string) {
	for _, s := range r.samples {
		if !slices.Contains(all, s.Server) {
			all = append(all, s.Server)
		}
	}
	return all
}

// judge returns why the run has failed, or nothing.
func (r *records) judge() (failures []string) {
	fail := func(format string, args ...any) {
		failures = append(failures, fmt.Sprintf(format, args...))
	}
	if r.end.Seconds < r.Seconds {
		fail("the run ended after %.0f of %.0f seconds", r.end.Seconds, r.Seconds)
	}
	for _, name := range r.names() {
		samples := r.of(name)
		for _, m := range measures {
			mean, drift := trend(m.second(samples, r.Seconds))
			if !m.isFlat(mean, drift) {
				fail("%s: %s: the mean is %.1f, and the drift %+.1f", name, m.name, mean, drift)
			}
		}
		unexpected := 0
		for _, s := range samples {
			unexpected += s.Unexpected
		}
		if unexpected > 0 {
			fail("%s: %d errors that no event explains", name, unexpected)
		}
		if !slices.ContainsFunc(r.audits, func(a audited) bool {
			return a.Server == name && a.Grants > 0
		}) {
			fail("%s: no grants", name)
		}
	}
	for _, a := range r.audits {
		if a.OverGrants > 0 {
			fail("%s: %d of %d buckets have granted too much, %s %.3f tokens", a.Server, a.OverGrants,
				a.Buckets, a.Bucket, a.Worst)
		}
	}
	seen := make(map[[2]string]bool) // only the first of each kind
	for _, f := range r.faults {
		if kind := [2]string{f.Server, f.Text}; !seen[kind] {
			seen[kind] = true
			fail("%s, after %.0f s: %s", f.Server, f.Seconds, f.Text)
		}
	}
	return failures
}

// print writes the tables of the run and the verdict.
func (r *records) print(w io.Writer) {
	fmt.Fprintf(w, "%s UTC, %s, %s, %d cores: %.0f s, %d requests a second to each server\n",
		r.Date, r.Version, r.Go, r.Cores, r.end.Seconds, r.Rate)
	most, sum := 0.0, 0.0
	for _, s := range r.samples {
		most, sum = max(most, s.Load), sum+s.Load
	}
	fmt.Fprintf(w, "processor time: %.2f of a core; load of the machine: %.1f on average,"+
		" %.1f at most\n\n", r.end.Processor/r.end.Seconds, sum/float64(len(r.samples)), most)
	r.printDrifts(w)
	r.printAudits(w)
	r.printEvents(w)
	for _, f := range r.judge() {
		fmt.Fprintf(w, "FAILED: %s\n", f)
	}
	if len(r.judge()) == 0 {
		fmt.Fprintln(w, "flat, no grant too much, no error that no event explains")
	}
}

// printDrifts writes the means and the drifts of the second half.
func (r *records) printDrifts(w io.Writer) {
	fmt.Fprintf(w, "| second half: mean and drift |")
	for _, m := range measures {
		fmt.Fprintf(w, " %s |", m.name)
	}
	fmt.Fprintln(w, "\n|---|"+strings.Repeat("---:|", len(measures)))
	for _, name := range r.names() {
		fmt.Fprintf(w, "| %s |", name)
		for _, m := range measures {
			mean, drift := trend(m.second(r.of(name), r.Seconds))
			fmt.Fprintf(w, " %.1f %+.1f |", mean, drift)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// printAudits writes the answers, their times and the audits.
func (r *records) printAudits(w io.Writer) {
	fmt.Fprintln(w, "| | answers | p50, ms | p99, ms | p99.9, ms | grants of buckets |"+
		" buckets audited | over-grants | nearest to its bound, tokens |"+
		" hot clients: granted of supplied |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, a := range r.audits {
		samples := r.of(a.Server)
		answers, hot, allowed := 0, 0.0, 0.0
		var p50, p99, p999 []float64
		for _, s := range samples {
			answers, hot, allowed = answers+s.Answers, hot+s.Hot, allowed+s.Allowed
			p50, p99, p999 = append(p50, s.P50), append(p99, s.P99), append(p999, s.P999)
		}
		fmt.Fprintf(w, "| %s | %d | %.2f | %.2f | %.2f | %d | %d | %d | %.3f | %.3f |\n", a.Server,
			answers, median(p50), median(p99), median(p999), a.Grants, a.Buckets, a.OverGrants,
			-a.Worst, hot/allowed)
	}
	fmt.Fprintln(w)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// printEvents writes a row for each kind of event.
func (r *records) printEvents(w io.Writer) {
	fmt.Fprintln(w, "| event | times | longest, s | errors that it explains | the last one after, s |")
	fmt.Fprintln(w, "|---|---:|---:|---|---:|")
	var names []string
	all := make(map[string][]event)
	for _, e := range r.events {
		if all[e.Name] == nil {
			names = append(names, e.Name)
		}
		all[e.Name] = append(all[e.Name], e)
	}
	for _, name := range names {
		took, recovered := 0.0, 0.0
		errors := make(map[string]int)
		for _, e := range all[name] {
			took, recovered = max(took, e.Took), max(recovered, e.Recovered)
			for kind, n := range e.Errors {
				errors[kind] += n
			}
		}
		var texts []string
		for kind, n := range errors {
			texts = append(texts, fmt.Sprintf("%s %d", kind, n))
		}
		slices.Sort(texts)
		fmt.Fprintf(w, "| %s | %d | %.1f | %s | %.2f |\n", name, len(all[name]), took,
			strings.Join(texts, ", "), recovered)
	}
	fmt.Fprintln(w)
}
