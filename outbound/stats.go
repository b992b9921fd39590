package outbound

import (
	"net/http"
	"time"
)

// Stats is what a Transport has done.
type Stats struct {
	Sent     uint64 // attempts that were sent
	Failures uint64 // failures of the store: those attempts were sent without its limits
	Rules    []RuleStats
}

// RuleStats is what a rule has done.
type RuleStats struct {
	Name     string
	Waited   uint64        // attempts that waited, and for this rule longer than for all others
	WaitTime time.Duration // sum of the waits of these attempts
	TooLate  uint64        // attempts that were not sent, because the wait would have been too long
	Held     uint64        // pauses that a server has caused
	Refused  uint64        // attempts that the server has refused, although it was their turn
}

// Stats returns what the Transport has done so far.
func (t *Transport) Stats() Stats {
	s := Stats{Sent: t.sent.Load(), Failures: t.failures.Load()}
	for _, r := range t.rules {
		r.count(func(stats *RuleStats) { s.Rules = append(s.Rules, *stats) })
	}
	return s
}

func (r *rule) count(f func(*RuleStats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

func (t *Transport) held(r *http.Request, rule *rule, pause time.Duration) {
	rule.count(func(s *RuleStats) { s.Held++ })
	t.logger.Info("the server orders a pause", "rule", rule.Name, "pause", pause)
	if f := t.hooks.Held; f != nil {
		f(r, rule.Name, pause)
	}
}

func (t *Transport) refused(r *http.Request, rule *rule, response *http.Response) {
	rule.count(func(s *RuleStats) { s.Refused++ })
	t.logger.Warn("the server refuses a request", "rule", rule.Name, "status", response.StatusCode)
	if f := t.hooks.Refused; f != nil {
		f(r, rule.Name, response)
	}
}

func (t *Transport) failed(r *http.Request, err error) {
	t.failures.Add(1)
	t.logger.Error("the store of the limits has failed", "error", err)
	if f := t.hooks.Error; f != nil {
		f(r, err)
	}
}
