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
	// nothing yet. The readings that the charge is given are of the clock of WithLimiterOptions,
	// and none is given by two goroutines at once.
	Charge(key string, cost float64) (tb.Charge, error)
}

// externalCharge is the charge of a limiter that is not of tb/cas. It can fail, and keeps its
// first error.
type externalCharge struct {
	tb.Charge
	err error
}

func (c *externalCharge) Check(t time.Time) (d tb.Decision, err error) {
	if c.err == nil {
		d, c.err = c.Charge.Check(t)
	}
	return clamp(d), c.err
}

func (c *externalCharge) Take(t time.Time) (d tb.Decision, err error) {
	if c.err == nil {
		d, c.err = c.Charge.Take(t)
	}
	return clamp(d), c.err
}

// clamp makes the decision of an external limiter safe for header fields, which have no
// negative numbers.
func clamp(d tb.Decision) tb.Decision {
	d.RetryAfter, d.Remaining = max(0, d.RetryAfter), max(0, d.Remaining)
	return d
}

// oneShotCharge is the charge of a limiter that has AllowN only. It cannot be checked: its
// answer is known once it is taken. It cannot be undone.
type oneShotCharge struct {
	ctx     context.Context
	limiter tb.Limiter
	key     string
	cost    float64
}

func (oneShotCharge) Check(time.Time) (tb.Decision, error) { return tb.Decision{Allowed: true}, nil }

// Take rounds the cost up to whole tokens. The limiter may keep the key, so it is a copy.
func (c oneShotCharge) Take(time.Time) (tb.Decision, error) {
	n := math.MaxInt32
	if c.cost < math.MaxInt32 {
		n = int(math.Ceil(c.cost))
	}
	return c.limiter.AllowN(c.ctx, strings.Clone(c.key), n)
}

func (oneShotCharge) Undo() {}

// prepare makes the charge of e's cost on e's bucket. Costs are validated with the policy and
// when they are read, so the limiters of tb/cas return no error.
func (e *entry) prepare(ctx context.Context) {
	switch {
	case e.addresses != nil:
		e.addrCharge, _ = e.addresses.Charge(e.network, e.cost)
	case e.texts != nil:
		e.stringCharge, _ = e.texts.Charge(e.key, e.cost)
	case e.foreign != nil: // the limiter may keep the key, so it is a copy
		e.external.Charge, e.external.err = e.foreign.Charge(strings.Clone(e.key), e.cost)
	default:
		e.external.Charge = oneShotCharge{ctx, e.other, e.key, e.cost}
	}
}

// charge returns the charge that prepare made. It is a pointer into e, so call.entries must
// not grow while the charge is in use.
func (e *entry) charge() tb.Charge {
	switch {
	case e.addresses != nil:
		return &e.addrCharge
	case e.texts != nil:
		return &e.stringCharge
	}
	return &e.external
}

// readLevel asks e's charge how full its bucket is. It reports false if the charge has no
// Level, which tb.Charge does not demand.
func (e *entry) readLevel(t time.Time) (l tb.Level, ok bool) {
	charge := e.charge()
	if external, ok := charge.(*externalCharge); ok {
		charge = external.Charge
	}
	c, ok := charge.(interface {
		Level(t time.Time) (tb.Level, error)
	})
	if !ok {
		return l, false
	}
	l, err := c.Level(t)
	if err != nil {
		return tb.Level{}, false
	}
	l.NextToken, l.Full = max(0, l.NextToken), max(0, l.Full)
	return l, true
}

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
