package httplimit

import (
	"errors"
	"net/netip"
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
	// charges of tb/cas and tb/mutex have, the fields of answers are exact. A Take that
	// succeeds after the time limit of WithTimeout is undone.
	//
	// A rule with its cost in the response needs charges with a method Settle(float64) error, as
	// those of tb/cas and tb/mutex have. New and SetPolicy make one charge of the key "" to check
	// that, and do not take it.
	Charge(key string, cost float64) (tb.Charge, error)
}

// ruleState is what a rule keeps when the policy changes: its limiter, in one of the first four
// fields, and its counts.
type ruleState struct {
	byAddr   *cas.Limiter[netip.Addr] // if the only key is ip:address
	byString *cas.Limiter[string]
	external Charger
	plain    tb.Limiter

	limiter any        // the same limiter, for its method Stats
	tiers   *tierTable // nil without tiers; only newState and SetPolicy use it
	counts  [stripes]counts
	delays  delayCounts

	settlements settleCounts
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
	case l.newLimiter != nil && r.tiers != nil:
		err = errors.New("tiers need a limiter of httplimit, and WithLimiter sets another")
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
	default:
		err = s.newTables(r, l.limiterOptions)
	}
	return s, err
}

// checkSettles returns an error if the rule's limiter cannot settle a charge.
func (r *rule) checkSettles() error {
	switch r.kind() {
	case plain:
		return errors.New("a cost in the response needs a limiter that is a Charger")
	case external:
		charge, err := r.external.Charge("", r.price.fallback)
		if err != nil {
			return err
		}
		if _, ok := charge.(settler); !ok {
			return errors.New("a cost in the response needs charges with Settle(float64) error")
		}
	}
	return nil
}

// prepare makes the charge of e's cost on e's bucket. e.charge points into e, so call.entries
// must not grow while the charge is in use. Costs are validated with the policy and when they
// are read, so the limiters of tb/cas return no error.
func (c *call) prepare(e *entry) {
	s := e.ruleState
	switch {
	case s.byAddr != nil:
		e.addrCharge = charge(s.byAddr, e, e.network)
		e.charge = &e.addrCharge
	case s.byString != nil:
		e.stringCharge = charge(s.byString, e, e.key)
		e.charge = &e.stringCharge
	default:
		e.external = e.newExternalCharge(c.r, c.timeLimit())
		e.charge = e.external
	}
	c.letWait(e)
}

// leveler is a charge that reports how full its bucket is. All charges of entries do.
type leveler interface {
	Level(t time.Time) (tb.Level, error)
}
