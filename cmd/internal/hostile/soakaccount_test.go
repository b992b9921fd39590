package hostile

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	proof "github.com/seed-181794aa/ratelimit/proof/audit"
)

const (
	// forever is later than every instant of a run.
	forever = time.Duration(math.MaxInt64)

	// retired is how long a bucket has had no grant when it is audited and forgotten. No client comes
	// back after that time.
	retired = time.Minute

	// tolerance is more than the rounding of the audit and of Redis, which counts microseconds, and
	// less than a request.
	tolerance = 0.001
)

// bucket is a key of a rule.
type bucket struct {
	rule int
	key  string
}

// account has what the clients of a server have seen. It is safe for concurrent use. Instants are
// since the beginning of the run.
type account struct {
	mu         sync.Mutex
	phases     [rules][]phase     // in the order of from; the first begins at 0
	grants     map[bucket][]grant // that are not audited yet
	windows    []*window
	times      []time.Duration // of answers, since the last medianTime
	unexpected int             // errors that no event explains
	faults     []string        // the first of them
	audited    audit
}

// audit counts what was audited. Worst is the greatest excess in tokens, and of the bucket Bucket.
type audit struct {
	Buckets, Grants, OverGrants int
	Worst                       float64
	Bucket                      string
}

// window is the time in which an event explains errors of some kinds, and in which each key may get
// tokens once, because a store loses its buckets.
type window struct {
	event     string
	kinds     []string
	tokens    [rules]float64
	from, end time.Duration
	counts    map[string]int // of the errors, by kind
}

// covers reports whether the event explains an error of a request.
func (w *window) covers(kind string, g grant) bool {
	return slices.Contains(w.kinds, kind) && g.received >= w.from && g.sent <= w.end
}

// granted records a granted request.
func (a *account) granted(r request, g grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.grants == nil {
		a.grants = make(map[bucket][]grant)
	}
	buckets := []bucket{{perClient, r.client}}
	if r.tenant != "" {
		buckets = append(buckets, bucket{perTenant, r.tenant})
	}
	for _, b := range buckets {
		a.grants[b] = append(a.grants[b], g)
	}
}

// answered records how long an answer has taken.
func (a *account) answered(g grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, g.received-g.sent)
}

// medianTime returns the median of the times since the last call, in ms, or 0 without an answer.
func (a *account) medianTime() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.times) == 0 {
		return 0
	}
	slices.Sort(a.times)
	median := a.times[len(a.times)/2]
	a.times = nil
	return median.Seconds() * 1000
}

// failed records a request without an answer.
func (a *account) failed(r request, g grant, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := kindOf(err)
	for _, w := range slices.Backward(a.windows) {
		if w.covers(kind, g) {
			w.counts[kind]++
			return
		}
	}
	if a.unexpected++; len(a.faults) < 10 {
		a.faults = append(a.faults, fmt.Sprintf("%s from %v to %v: %s: %v", r.client, g.sent, g.received,
			kind, err))
	}
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
		worst := a.excess(b.rule, grants)
		t := &a.audited
		if t.Buckets == 0 || worst > t.Worst {
			t.Worst, t.Bucket = worst, b.key
		}
		t.Buckets++
		t.Grants += len(grants)
		if worst > tolerance {
			t.OverGrants++
		}
	}
}

// limits puts limits in force from an instant on.
func (a *account) limits(at time.Duration, limits [rules]limit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for rule, l := range limits {
		a.phases[rule] = append(a.phases[rule], phase{at, l})
	}
}

// open begins a window. done ends it.
func (a *account) open(at time.Duration, w window) (done func(time.Duration)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.from, w.end, w.counts = at, forever, map[string]int{}
	a.windows = append(a.windows, &w)
	return func(at time.Duration) {
		a.mu.Lock()
		defer a.mu.Unlock()
		w.end = at
	}
}

// explained returns the numbers of errors by event and kind.
func (a *account) explained() map[string]int {
	all := map[string]int{}
	for _, w := range a.windows {
		for kind, n := range w.counts {
			all[w.event+": "+kind] += n
		}
	}
	return all
}

// phase is a limit from an instant on. While a limit changes, the phase has the greater one.
type phase struct {
	from time.Duration
	limit
}

// supply returns what the rate of a rule supplies until an instant, and the limit in force then.
func (a *account) supply(rule int, t time.Duration) (tokens float64, l limit) {
	phases := a.phases[rule]
	for i, p := range phases {
		if p.from > t {
			break
		}
		to := t
		if i+1 < len(phases) {
			to = min(t, phases[i+1].from)
		}
		tokens += p.rate * (to - p.from).Seconds()
		l = p.limit
	}
	return tokens, l
}

// given returns the tokens of windows that may have come by an instant, and those that have
// certainly come before.
func (a *account) given(rule int, t time.Duration) (most, least float64) {
	for _, w := range a.windows {
		if w.from <= t {
			most += w.tokens[rule]
		}
		if w.end < t {
			least += w.tokens[rule]
		}
	}
	return most, least
}

// grant is when a granted request was sent, and when its answer came. It was decided in between.
type grant struct{ sent, received time.Duration }

// excess returns the most by which the grants of an interval exceed the capacity at its beginning
// and what the interval supplies. It is negative if none does.
func (a *account) excess(rule int, grants []grant) float64 {
	var all []proof.Grant[float64]
	for _, g := range grants {
		supplied, l := a.supply(rule, g.sent)
		_, before := a.given(rule, g.sent)
		most, _ := a.supply(rule, g.received)
		after, _ := a.given(rule, g.received)
		all = append(all, proof.Grant[float64]{
			From: int64(g.sent), To: int64(g.received), Amount: 1,
			Least: supplied + before - l.capacity, Most: most + after,
		})
	}
	return new(proof.Auditor[float64]).Add(all)
}

// A client is granted all that its limit, a change of the limit or a lost store allows, and then
// one request more.
func TestAuditFindsOneGrantTooMuch(t *testing.T) {
	const first = 500 * time.Millisecond // 20 grants; the others come a second later
	for _, c := range []struct {
		name    string
		later   int
		happens func(*account)
	}{
		{"nothing", 5, func(*account) {}},
		{"the limit changes", 6, func(a *account) { a.limits(time.Second, versions[1]) }},
		{"the store is lost", 20, func(a *account) {
			a.open(first, window{tokens: [rules]float64{20, 40}})(time.Second)
		}},
	} {
		for more := range 2 {
			a := new(account)
			a.limits(0, versions[0])
			c.happens(a)
			for i := range 20 + c.later + more {
				at := first
				if i >= 20 {
					at += time.Second
				}
				a.granted(request{client: "c"}, grant{at, at})
			}
			a.auditBefore(forever)
			if a.audited.Buckets != 1 || a.audited.OverGrants != more {
				t.Errorf("%s, %d more: %+v", c.name, more, a.audited)
			}
		}
	}
}

// An event explains errors of its kinds while it lasts, and no others.
func TestEventExplainsErrors(t *testing.T) {
	a := new(account)
	a.open(10*time.Second, window{event: "e", kinds: []string{undecided}})(20 * time.Second)
	at := func(seconds int) grant {
		t := time.Duration(seconds) * time.Second
		return grant{t, t}
	}
	a.failed(request{}, at(9), statusError(503))
	a.failed(request{}, at(15), statusError(503))
	a.failed(request{}, at(15), statusError(502))
	a.failed(request{}, at(21), statusError(503))
	if a.unexpected != 3 || len(a.faults) != 3 || a.explained()["e: "+undecided] != 1 {
		t.Errorf("%d errors %q, %v", a.unexpected, a.faults, a.explained())
	}
}
