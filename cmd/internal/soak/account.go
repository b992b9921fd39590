package main

import (
	"slices"
	"sync"
	"time"
)

// retired is how long a bucket has had no grant when it is audited and forgotten. No client comes
// back after that time.
const retired = time.Minute

// tolerance is more than the rounding of the audit and of Redis, which counts microseconds, and
// less than a request.
const tolerance = 0.001

// bucket is a key of a rule.
type bucket struct {
	rule int
	key  string
}

// account has what the clients of a server have seen. It is safe for concurrent use.
type account struct {
	mu      sync.Mutex
	bounds  [rules]bound
	grants  map[bucket][]grant // that are not audited yet
	windows []*window
	faults  []string // errors that no event explains
	audited audit
	recent  recent
}

// audit counts what was audited. Worst is the greatest excess in tokens, and of the bucket Bucket.
type audit struct {
	Buckets, Grants, OverGrants int
	Worst                       float64
	Bucket                      string
}

// recent counts since the last sample.
type recent struct {
	latencies            []time.Duration // of the answers
	granted, hot         int             // hot is of the clients that are always above their limit
	expected, unexpected int
}

// window is the time in which an event explains errors of some kinds. The last of them came at
// last.
type window struct {
	kinds           []string
	from, end, last time.Duration
	counts          map[string]int
}

// covers reports whether the event explains an error of a request.
func (w *window) covers(kind string, g grant) bool {
	return slices.Contains(w.kinds, kind) && g.received >= w.from && g.sent <= w.end
}

// answered records an answer.
func (a *account) answered(r request, g grant, granted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent.latencies = append(a.recent.latencies, g.received-g.sent)
	if !granted {
		return
	}
	a.recent.granted++
	if r.tenant == "" {
		a.recent.hot++
	} else {
		b := bucket{perTenant, r.tenant}
		a.grants[b] = append(a.grants[b], g)
	}
	b := bucket{perClient, r.client}
	a.grants[b] = append(a.grants[b], g)
}

// failed records a request without an answer.
func (a *account) failed(g grant, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := kindOf(err)
	for _, w := range slices.Backward(a.windows) {
		if w.covers(kind, g) {
			a.recent.expected++
			w.counts[kind]++
			w.last = max(w.last, g.received)
			return
		}
	}
	a.recent.unexpected++
	if len(a.faults) < 10 { // in a sample
		a.faults = append(a.faults, kind+": "+err.Error())
	}
}

// take returns the counts since the last call and the faults, and begins again.
func (a *account) take() (r recent, faults []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, faults, a.recent, a.faults = a.recent, a.faults, recent{}, nil
	return r, faults
}

// allowed returns what the rate of a client supplies in an interval.
func (a *account) allowed(from, to time.Duration) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := &a.bounds[perClient]
	return b.supply(to) - b.supply(from)
}

// auditBefore judges the buckets whose last grant is older than an instant, and forgets them.
func (a *account) auditBefore(before time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for b, grants := range a.grants {
		if grants[len(grants)-1].received >= before {
			continue
		}
		delete(a.grants, b)
		a.audited.add(b, &a.bounds[b.rule], grants)
	}
}

func (t *audit) add(b bucket, bound *bound, grants []grant) {
	worst := bound.excess(grants)
	if t.Buckets == 0 || worst > t.Worst {
		t.Worst, t.Bucket = worst, b.key
	}
	t.Buckets++
	t.Grants += len(grants)
	if worst > tolerance {
		t.OverGrants++
	}
}

// limits puts limits in force from an instant on.
func (a *account) limits(at time.Duration, limits [rules]limit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.bounds {
		a.bounds[i].set(at, limits[i])
	}
}

// give begins a gift of one capacity to each key, or of less. done ends it.
func (a *account) give(at time.Duration, tokens [rules]float64) (done func(time.Duration)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var of [rules]int
	for i := range a.bounds {
		b := &a.bounds[i]
		of[i] = len(b.gifts)
		b.gifts = append(b.gifts, gift{at, forever, tokens[i]})
	}
	return func(at time.Duration) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range a.bounds {
			a.bounds[i].gifts[of[i]].to = at
		}
	}
}

// expect begins a window.
func (a *account) expect(at time.Duration, kinds []string) *window {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &window{kinds: kinds, from: at, end: forever, counts: make(map[string]int)}
	a.windows = append(a.windows, w)
	return w
}
