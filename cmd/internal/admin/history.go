package admin

import (
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// historySeconds is the length of the history.
const historySeconds = 120

// ruleID identifies a rule.
type ruleID struct{ set, rule string }

// history holds what each rule granted and refused in each of the last seconds.
type history struct {
	mu    sync.Mutex
	rules map[ruleID]*series
}

// series is the history of one rule. A shadow rule has its shadow counts.
type series struct {
	granted, refused         [historySeconds]uint64 // a ring
	next                     int                    // index of the next second
	lastGranted, lastRefused uint64                 // totals at the end of the last second
	seen                     bool                   // the policy had the rule in the last second
}

func newHistory() *history { return &history{rules: map[ruleID]*series{}} }

// addSecond appends a second, at whose end stats are the totals of the rules.
func (h *history) addSecond(stats []httplimit.RuleStats) {
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
		h.rules[id].addSecond(s.Granted+s.ShadowGranted, s.Refused+s.ShadowRefused)
	}
	for id, s := range h.rules {
		if !s.seen {
			delete(h.rules, id)
		}
	}
}

func (s *series) addSecond(granted, refused uint64) {
	if granted < s.lastGranted || refused < s.lastRefused { // a new rule of the same name
		s.lastGranted, s.lastRefused = 0, 0
	}
	s.granted[s.next] = granted - s.lastGranted
	s.refused[s.next] = refused - s.lastRefused
	s.next = (s.next + 1) % historySeconds
	s.lastGranted, s.lastRefused = granted, refused
	s.seen = true
}

// perSecond returns the counts of a rule, the oldest second first.
func (h *history) perSecond(id ruleID) (granted, refused []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	granted, refused = make([]uint64, historySeconds), make([]uint64, historySeconds)
	if s := h.rules[id]; s != nil {
		n := copy(granted, s.granted[s.next:])
		copy(granted[n:], s.granted[:s.next])
		copy(refused, s.refused[s.next:])
		copy(refused[n:], s.refused[:s.next])
	}
	return granted, refused
}
