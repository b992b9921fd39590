package admin

import (
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// seconds is how far back the history goes.
const seconds = 120

// ruleID names a rule.
type ruleID struct{ set, rule string }

// history is what was granted and refused in each of the last seconds, rule by rule.
type history struct {
	mu    sync.Mutex
	rules map[ruleID]*series
}

// series is the history of a rule. Shadow rules are those that count for shadow.
type series struct {
	granted, refused         [seconds]uint64 // a ring
	next                     int             // where the next second goes
	lastGranted, lastRefused uint64          // counts when the last one ended
	seen                     bool            // in the policy, in the last second
}

func newHistory() *history { return &history{rules: map[ruleID]*series{}} }

// add ends a second, in which the counts of the rules became those of stats.
func (h *history) add(stats []httplimit.RuleStats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.rules {
		s.seen = false
	}
	for _, s := range stats {
		id := ruleID{s.Set, s.Rule}
		if h.rules[id] == nil {
			h.rules[id] = &series{}
		}
		h.rules[id].add(s.Granted+s.ShadowGranted, s.Refused+s.ShadowRefused)
	}
	for id, s := range h.rules {
		if !s.seen {
			delete(h.rules, id)
		}
	}
}

func (s *series) add(granted, refused uint64) {
	if granted < s.lastGranted || refused < s.lastRefused { // a new rule of the same name
		s.lastGranted, s.lastRefused = 0, 0
	}
	s.granted[s.next] = granted - s.lastGranted
	s.refused[s.next] = refused - s.lastRefused
	s.next = (s.next + 1) % seconds
	s.lastGranted, s.lastRefused = granted, refused
	s.seen = true
}

// of returns the history of a rule, the oldest second first.
func (h *history) of(id ruleID) (granted, refused []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	granted, refused = make([]uint64, seconds), make([]uint64, seconds)
	if s := h.rules[id]; s != nil {
		n := copy(granted, s.granted[s.next:])
		copy(granted[n:], s.granted[:s.next])
		copy(refused, s.refused[s.next:])
		copy(refused[n:], s.refused[:s.next])
	}
	return granted, refused
}
