package httplimit

import (
	"context"
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

// charge makes e ready to be charged its cost.
func (c *call) charge(e *entry) tb.Charge {
	if charge := e.charge(e.cost); charge != nil {
		return charge
	}
	e.foreign.Charge = asking{c.r.Context(), e}
	return &e.foreign
}

// asking is the charge of a limiter that has none. What it would answer is not known
// before it is asked, and what it has granted stays taken.
type asking struct {
	ctx context.Context
	*entry
}

func (asking) Check(time.Time) (tb.Decision, error) { return tb.Decision{Allowed: true}, nil }

// Take rounds the cost up to whole tokens. The limiter may keep the key.
func (a asking) Take(time.Time) (tb.Decision, error) {
	n := math.MaxInt32
	if a.cost < math.MaxInt32 {
		n = int(math.Ceil(a.cost))
	}
	return a.other.AllowN(a.ctx, strings.Clone(a.key), n)
}

func (asking) Undo() {}

// kind says what is known of a limiter. The kinds are in the order in which limiters are
// charged, once all that can be checked are: what cannot be undone comes first, so that
// nothing has to be when it refuses, and what may be slow before what is not.
type kind int

const (
	unknown kind = iota // nothing but tb.Limiter
	charger
	own // of tb/cas
)

func (s *state) kind() kind {
	switch {
	case s.other != nil:
		return unknown
	case s.foreign != nil:
		return charger
	}
	return own
}
