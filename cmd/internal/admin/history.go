package admin

import (
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

const historySeconds = 120

type ruleID struct{ set, rule string }

// counts are what a rule has granted and refused. A shadow rule has its shadow counts.
type counts struct{ granted, refused uint64 }

// history has the counts of the rules at the ends of the last seconds, the oldest first.
type history struct {
	mu   sync.Mutex
	ends []map[ruleID]counts // the first is before the first second
}

func newHistory() *history { return &history{ends: make([]map[ruleID]counts, 1)} }

func (h *history) addSecond(stats []httplimit.RuleStats) {
	end := make(map[ruleID]counts, len(stats))
	for _, s := range stats {
		end[ruleID{s.Set, s.Rule}] = counts{s.Granted + s.ShadowGranted, s.Refused + s.ShadowRefused}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = append(h.ends, end)
	h.ends = h.ends[max(0, len(h.ends)-historySeconds-1):]
}

func (h *history) perSecond(id ruleID) (granted, refused []uint64) { // the oldest first
	h.mu.Lock()
	defer h.mu.Unlock()
	granted, refused = make([]uint64, historySeconds), make([]uint64, historySeconds)
	for i := range h.ends[1:] {
		before, end := h.ends[i][id], h.ends[i+1][id]
		if end.granted < before.granted || end.refused < before.refused {
			before = counts{} // a new rule of the same name
		}
		at := historySeconds - len(h.ends) + 1 + i
		granted[at], refused[at] = end.granted-before.granted, end.refused-before.refused
	}
	return granted, refused
}
