package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// The audit is compared with one that looks at each interval by itself, under limits that change
// and with gifts.
func TestExcess(t *testing.T) {
	above := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 31))
		instant := func() time.Duration { return time.Duration(rng.IntN(60)) * time.Second }
		var b bound
		b.set(0, limit{float64(1 + rng.IntN(5)), float64(rng.IntN(3))})
		for at := instant(); at < 50*time.Second; at += instant() + time.Second {
			b.set(at, limit{float64(1 + rng.IntN(5)), float64(rng.IntN(3))})
		}
		for range rng.IntN(3) {
			from := instant()
			b.gifts = append(b.gifts, gift{from, from + instant()/10, float64(rng.IntN(5))})
		}
		grants := make([]grant, 1+rng.IntN(20))
		for i := range grants {
			sent := instant()
			grants[i] = grant{sent, sent + instant()/10}
		}
		want := math.Inf(-1)
		for _, x := range grants {
			for _, y := range grants {
				if x.sent > y.received {
					continue
				}
				sum := 0.0
				for _, g := range grants {
					if g.sent >= x.sent && g.received <= y.received {
						sum++
					}
				}
				if sum > 0 {
					want = max(want, sum-b.limitAt(x.sent).capacity-b.most(y.received)+b.least(x.sent))
				}
			}
		}
		if got := b.excess(grants); math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: the excess of %v with %+v is %v, want %v", seed, grants, b, got, want)
		}
		if want > 0 {
			above++
		}
	}
	if above < 200 || above > 1800 {
		t.Errorf("%d of 2000 are above the bound", above)
	}
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
