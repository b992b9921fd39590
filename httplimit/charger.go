package httplimit

import (
	"math"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charger is a limiter whose charges can be undone, so that it takes part in all or
// nothing: see WithLimiter.
type Charger interface {
	tb.Limiter
	// Charge returns a charge of a decimal number of tokens on key's bucket. It takes
	// nothing yet. The readings that the charge is given are of the clock of WithCore,
	// and none is given by two goroutines at once.
	Charge(key string, cost float64) (tb.Charge, error)
}

// foreign is a charge of a Charger. Unlike one of tb/cas it can fail, and it remembers
// that it did.
type foreign struct {
	tb.Charge
	err error
}

func (f *foreign) Check(t time.Time) (d tb.Decision, err error) {
	if f.err == nil {
		d, f.err = f.Charge.Check(t)
	}
	return sane(d), f.err
}

func (f *foreign) Take(t time.Time) (d tb.Decision, err error) {
	if f.err == nil {
		d, f.err = f.Charge.Take(t)
	}
	return sane(d), f.err
}

// sane returns the decision of a limiter of which nothing is known as the fields of an
// answer can have it: they know of no debt, and of no waiting backwards.
func sane(d tb.Decision) tb.Decision {
	d.RetryAfter, d.Remaining = max(0, d.RetryAfter), max(0, d.Remaining)
	return d
}

// charge makes e ready to be charged a cost, or returns nil if its limiter has no
// charges. Costs are checked with the policy and where they are read, so they are valid,
// and those of tb/cas have no error.
func (e *entry) charge(cost float64) tb.Charge {
	switch {
	case e.rule.addresses != nil:
		e.addresses, _ = e.rule.addresses.Charge(e.network, cost)
		return &e.addresses
	case e.rule.texts != nil:
		e.texts, _ = e.rule.texts.Charge(e.key, cost)
		return &e.texts
	case e.rule.foreign != nil: // which may keep the key
		e.foreign.Charge, e.foreign.err = e.rule.foreign.Charge(strings.Clone(e.key), cost)
		return &e.foreign
	}
	return nil
}

// ask charges a limiter that has no charges. It may keep the key.
func (c *call) ask(e *entry) (tb.Decision, error) {
	n := math.MaxInt32
	if e.cost < math.MaxInt32 {
		n = int(math.Ceil(e.cost))
	}
	d, err := e.other.AllowN(c.r.Context(), strings.Clone(e.key), n)
	return sane(d), err
}
