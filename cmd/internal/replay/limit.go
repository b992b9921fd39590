package replay

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// limitMode decides requests by one limit.
type limitMode struct {
	keyed
	limiter  *cas.Limiter[string]
	now      time.Time // of the current request, which is the clock of the limiter
	outcome  Limit     // its counts of requests
	visitors visitors
	ranking  ranking
}

func newLimitMode(o *Options) (*limitMode, error) {
	k, err := newKeyed(o)
	if err != nil {
		return nil, err
	}
	m := &limitMode{
		keyed: k, outcome: Limit{Rate: o.Rate.String(), Burst: uint64(o.Burst), rate: o.Rate},
		visitors: newVisitors(maxVisitors), ranking: newRanking(maxTracked),
	}
	m.limiter, err = cas.New[string](o.Rate.limit(o.Burst),
		tb.WithClock(func() time.Time { return m.now }), tb.WithMaxKeys(o.MaxKeys))
	return m, err
}

// decide decides a request of a key. The ranking has the key as a string, which saves an allocation
// for each request of a tracked key.
func (m *limitMode) decide(p pending, key []byte) (granted bool, _ error) {
	m.now = time.Unix(0, p.time)
	entry := m.ranking.track(key, &m.visitors)
	d, err := m.limiter.AllowAt(m.now, entry.Key, p.cost)
	if err != nil {
		return false, fmt.Errorf("cost %v: %w", p.cost, err)
	}
	if d.Allowed {
		m.outcome.Granted++
	} else {
		m.outcome.Refused++
	}
	entry.Value.add(p.time/int64(time.Second), p.path, d.Allowed)
	return d.Allowed, nil
}

func (m *limitMode) fill(res *Result) {
	rep := &res.Report
	for e := range m.ranking.All() {
		e.Value.end()
	}
	m.fillKeys(rep, func(yield func(string, uint64) bool) {
		for e := range m.ranking.All() {
			if !yield(e.Key, e.Value.Requests) {
				return
			}
		}
	})
	o, oneIn := m.outcome, m.visitors.OneIn()
	kinds := newKinds(o.Burst, m.cost)
	for _, v := range m.visitors.Values {
		kinds.add(&v.Visits, v.Kind(), oneIn, v.refused > 0, v.refused)
	}
	rep.Kinds = kinds.all()
	rep.Keys, rep.KeysExact, o.KeysRefused = m.visitors.keys(), oneIn == 1, kinds.refused
	rep.Limit, rep.EvictedInDebt = &o, m.limiter.Stats().EvictedInDebt
	for _, e := range m.ranking.top(topKeys) {
		v := &e.Value
		rep.Top = append(rep.Top, TopKey{
			Key: compositekey.Parts(e.Key), Requests: v.Requests, Refused: v.refused,
			Partial: e.Partial, Peak: v.peak.Most, Habit: m.habits.of(e.Key),
		})
	}
}
