package httplimit

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Charger is a limiter whose charges can be undone, so that it takes part in all or nothing:
// see WithLimiter.
type Charger interface {
	tb.Limiter
	// Charge returns a charge of a decimal number of tokens on key's bucket, and takes
	// nothing yet. The charge gets readings of the clock of WithLimiterOptions, from one
	// goroutine at a time. If it has a method Level(time.Time) (tb.Level, error), as the
	// charges of tb/cas and tb/mutex have, the fields of responses are exact.
	Charge(key string, cost float64) (tb.Charge, error)
}

// ruleState is what a rule keeps when the policy changes: its limiter, in one of the first four
// fields, and its counts.
type ruleState struct {
	byAddr   *cas.Limiter[netip.Addr] // if the only key is ip:address
	byString *cas.Limiter[string]
	external Charger
	plain    tb.Limiter

	limiter any // the same limiter, for its method Stats
	counts  [stripes]counts
}

// kind is what a limiter can do. The kinds are in the order in which limiters are charged once
// all charges are checked. A limiter that cannot undo comes first, so that its refusal leaves
// nothing to undo. A limiter that may be slow comes before the limiters in this process, so that
// their tokens are not held while it is asked.
type kind int

const (
	plain     kind = iota // AllowN only
	external              // a Charger
	inProcess             // of tb/cas
)

func (s *ruleState) kind() kind {
	switch {
	case s.plain != nil:
		return plain
	case s.external != nil:
		return external
	}
	return inProcess
}

// newState returns a state for r, with full buckets.
func (l *Limiter) newState(r *rule) (s *ruleState, err error) {
	s = &ruleState{}
	switch {
	case l.newLimiter != nil:
		s.limiter, err = l.newLimiter(r.Rule)
		switch custom := s.limiter.(type) {
		case nil:
			if err == nil {
				err = errors.New("the function of WithLimiter returned nil")
			}
		case *cas.TokenBucket:
			s.byString = custom
		case Charger:
			s.external = custom
		case tb.Limiter:
			s.plain = custom
		}
	case len(r.sources) == 1 && r.sources[0].address:
		s.byAddr, err = cas.New[netip.Addr](r.Limit, l.limiterOptions...)
		s.limiter = s.byAddr
	default:
		s.byString, err = cas.New[string](r.Limit, l.limiterOptions...)
		s.limiter = s.byString
	}
	return s, err
}

// prepare makes the charge of e's cost on e's bucket. e.charge points into e, so call.entries
// must not grow while the charge is in use. Costs are validated with the policy and when they
// are read, so the limiters of tb/cas return no error.
func (e *entry) prepare(r *http.Request) {
	s := e.ruleState
	switch {
	case s.byAddr != nil:
		e.addrCharge, _ = s.byAddr.Charge(e.network, e.cost)
		e.charge = &e.addrCharge
		return
	case s.byString != nil:
		e.stringCharge, _ = s.byString.Charge(e.key, e.cost)
		e.charge = &e.stringCharge
		return
	case s.external != nil: // it may keep the key, so it gets a copy
		e.external.Charge, e.external.err = s.external.Charge(strings.Clone(e.key), e.cost)
	default:
		e.external.Charge = oneShotCharge{r.Context(), s.plain, e.key, e.cost}
	}
	e.charge = &e.external
}

// leveler is a charge that reports how full its bucket is. All charges of entries do.
type leveler interface {
	Level(t time.Time) (tb.Level, error)
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

// Level returns an error if the limiter reports no levels.
func (c *externalCharge) Level(t time.Time) (tb.Level, error) {
	l, ok := c.Charge.(leveler)
	if !ok {
		return tb.Level{}, errors.ErrUnsupported
	}
	level, err := l.Level(t)
	if err != nil {
		return tb.Level{}, err
	}
	level.NextToken, level.Full = max(0, level.NextToken), max(0, level.Full)
	return level, nil
}

// clamp makes the decision of an external limiter safe for header fields, which have no
// negative numbers.
func clamp(d tb.Decision) tb.Decision {
	d.RetryAfter, d.Remaining = max(0, d.RetryAfter), max(0, d.Remaining)
	return d
}

// oneShotCharge is the charge of a limiter that has AllowN only. Check cannot know the answer,
// and Undo cannot give tokens back.
type oneShotCharge struct {
	ctx     context.Context
	limiter tb.Limiter
	key     string
	cost    float64
}

func (oneShotCharge) Check(time.Time) (tb.Decision, error) {
	return tb.Decision{Allowed: true}, nil
}

// Take rounds the cost up to whole tokens. The limiter may keep the key, so it gets a copy.
func (c oneShotCharge) Take(time.Time) (tb.Decision, error) {
	n := math.MaxInt32
	if c.cost < math.MaxInt32 {
		n = int(math.Ceil(c.cost))
	}
	return c.limiter.AllowN(c.ctx, strings.Clone(c.key), n)
}

func (oneShotCharge) Undo() {}
