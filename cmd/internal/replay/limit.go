package replay

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

type limitMode struct {
	*keyer
	limiter *cas.Limiter[string]
	now     time.Time // of the current request, which is the clock of the limiter
	outcome Limit     // its counts of requests
	contest *contest  // nil without Options.Algorithms
}

func newLimitMode(o *Options) (*limitMode, error) {
	k, err := newKeyer(o)
	if err != nil {
		return nil, err
	}
	m := &limitMode{keyer: k, outcome: Limit{Rate: o.Rate, Burst: uint64(o.Burst)}}
	if len(o.Algorithms) == 0 {
		m.clients.bound = max(o.MaxKeys, leastClients)
	} else if m.contest, err = newContest(o); err != nil {
		return nil, err
	}
	m.limiter, err = cas.New[string](o.Rate.limit(o.Burst),
		tb.WithClock(func() time.Time { return m.now }), tb.WithMaxKeys(o.MaxKeys))
	return m, err
}

func (m *limitMode) decide(p pending) (granted bool, _ error) {
	if m.contest != nil {
		if err := m.clients.check("--algorithm"); err != nil {
			return false, err
		}
		m.contest.decide(p)
	}
	m.now = time.Unix(0, p.time)
	d, err := m.limiter.AllowAt(m.now, p.client.key, 1)
	if d.Allowed {
		m.outcome.Granted++
	} else {
		m.outcome.Refused++
		p.client.refused++
	}
	return d.Allowed, err
}

func (m *limitMode) fill(rep *Report) {
	m.fillKeys(rep)
	if m.clients.more {
		rep.Doubts = append(rep.Doubts, fmt.Sprintf("There are more than %s, and the ones that came"+
			" later are in no count of %ss. Take a greater --max-keys.",
			counted(m.clients.bound, rep.thing()), rep.thing()))
	}
	rep.Limit, rep.EvictedInDebt = &m.outcome, m.limiter.Stats().EvictedInDebt
	m.clients.fill(rep)
	if m.contest != nil {
		rep.Algorithms = m.contest.outcomes
	}
}
