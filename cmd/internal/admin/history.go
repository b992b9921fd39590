package admin

import (
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

const historySeconds = 120

type ruleID struct{ set, rule string }

// counts are what a rule has granted and refused. A shadow rule has its shadow counts.
type counts struct{ granted, refused uint64 }

// history has what the rules granted and refused in each of the last seconds, the oldest first. A
// second has only the rules that were used in it, because there may be thousands of others.
type history struct {
	mu      sync.Mutex
	seconds []map[ruleID]counts
	end     map[ruleID]counts // the counts at the end of the last second
}

func (h *history) addSecond(stats []httplimit.RuleStats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	second, end := map[ruleID]counts{}, make(map[ruleID]counts, len(stats))
	for _, s := range stats {
		id := ruleID{s.Set, s.Rule}
		now := counts{s.Granted + s.ShadowGranted, s.Refused + s.ShadowRefused}
		before := h.end[id]
		if now.granted < before.granted || now.refused < before.refused {
			before = counts{} // a new rule of the same name
		}
		if now != before {
			second[id] = counts{now.granted - before.granted, now.refused - before.refused}
		}
		end[id] = now
	}
	h.end, h.seconds = end, append(h.seconds, second)
	h.seconds = h.seconds[max(0, len(h.seconds)-historySeconds):]
}

// perSecond returns two empty slices for a rule that was not used.
func (h *history) perSecond(id ruleID) (granted, refused []uint64) { // the oldest first
	h.mu.Lock()
	defer h.mu.Unlock()
	granted, refused = []uint64{}, []uint64{}
	for i, second := range h.seconds {
		if c, used := second[id]; used {
			if len(granted) == 0 {
				granted, refused = make([]uint64, historySeconds), make([]uint64, historySeconds)
			}
			at := historySeconds - len(h.seconds) + i
			granted[at], refused[at] = c.granted, c.refused
		}
	}
	return granted, refused
}
