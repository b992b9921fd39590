package main

import (
	"testing"
	"time"
)

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
			a.give(first, [rules]float64{20, 40})(time.Second)
		}},
	} {
		for more := range 2 {
			a := &account{grants: make(map[bucket][]grant)}
			a.limits(0, versions[0])
			c.happens(a)
			for i := range 20 + c.later + more {
				at := first
				if i >= 20 {
					at += time.Second
				}
				a.answered(request{client: "c"}, grant{at, at}, true)
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
	w := a.expect(10*time.Second, []string{undecided})
	w.end = 20 * time.Second
	at := func(seconds int) grant {
		t := time.Duration(seconds) * time.Second
		return grant{t, t}
	}
	a.failed(at(9), statusError(503))
	a.failed(at(15), statusError(503))
	a.failed(at(15), statusError(502))
	a.failed(at(21), statusError(503))
	r, faults := a.take()
	if r.expected != 1 || r.unexpected != 3 || len(faults) != 3 || w.counts[undecided] != 1 {
		t.Errorf("%+v, %q, %+v", r, faults, w)
	}
}
