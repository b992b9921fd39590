package fuzz

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// outcomes counts what programs reach.
type outcomes map[string]int

// wanted are the outcomes that random programs must reach, and how often a hundred of them do.
var wanted = map[string]int{
	"granted":                   1000,
	"refused":                   1000,
	"refused with a wait":       500,
	"undone":                    5,
	"evicted full":              25,
	"evicted in debt":           25,
	"new key refused":           25,
	"delayed":                   100,
	"reservation refused":       50,
	"in debt":                   300,
	"cancelled":                 30,
	"cancelled, nothing back":   50,
	"settled with less":         20,
	"settled with more":         20,
	"not all paid":              10,
	"wait ended early":          20,
	"cannot wait":               20,
	"another rate":              50,
	"another capacity":          50,
	"held":                      50,
	"kept back":                 20,
	"held by a refusal":         20,
	"conversion in debt":        4,
	"moved, and nothing undone": 0,
}

// count counts the outcomes of a program.
func (o outcomes) count(p program, answers []answer, moved bool) {
	limit := p.limit
	for i, a := range answers {
		switch op := p.calls[i].op; {
		case a.decision.Allowed:
			o["granted"]++
			if a.other != (tb.Decision{}) && !a.other.Allowed {
				o["undone"]++
			}
		case a.err == "" && (op <= takeAll || op == keep) || op == reserve:
			o["refused"]++
			if a.decision.RetryAfter < tb.Never {
				o["refused with a wait"]++
			}
		}
		o.countEnds(p.calls[i].op, a)
		if p.calls[i].refusal > 0 && !a.decision.Allowed && a.own != a.ownBefore {
			o["held by a refusal"]++
		}
		if a.limit != limit {
			switch {
			case a.limit.Capacity == limit.Capacity:
				o["another rate"]++
			case a.level.Tokens < 0:
				o["conversion in debt"]++
				fallthrough
			default:
				o["another capacity"]++
			}
			limit = a.limit
		}
	}
	last := answers[len(answers)-1].stats
	o["evicted full"] += int(last.EvictedFull)
	o["evicted in debt"] += int(last.EvictedInDebt)
	o["new key refused"] += int(last.RefusedNew)
	if last.Unpaid > 0 {
		o["not all paid"]++
	}
	if moved {
		o["moved, and nothing undone"]++
	}
}

// countEnds counts the outcomes of a call that waits, or ends a grant.
func (o outcomes) countEnds(op op, a answer) {
	if a.delays != ([2]time.Duration{}) {
		o["delayed"]++
	}
	if a.level.Tokens < 0 {
		o["in debt"]++
	}
	switch {
	case op == reserve && a.err == "" && !a.decision.Allowed:
		o["reservation refused"]++
	case op == hold && a.own != a.ownBefore:
		o["held"]++
	case op == keep && !a.decision.Allowed && a.decision.RetryAfter < tb.Never && a.own.Tokens > 0:
		o["kept back"]++
	case op == cancel && a.own != a.ownBefore:
		o["cancelled"]++
	case op == cancel:
		o["cancelled, nothing back"]++
	case op == settle && a.own.Tokens > a.ownBefore.Tokens:
		o["settled with less"]++
	case op == settle && a.own.Tokens < a.ownBefore.Tokens:
		o["settled with more"]++
	case strings.Contains(a.err, "context canceled"):
		o["wait ended early"]++
	case strings.Contains(a.err, "WaitError"):
		o["cannot wait"]++
	}
}

// check reports the outcomes that a number of programs, if it is great, has reached too rarely.
func (o outcomes) check(t *testing.T, programs int) {
	if programs < 1000 {
		return
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		fmt.Fprintf(&all, "%s: %d\n", name, o[name])
		if o[name] < wanted[name]*programs/100 {
			t.Errorf("the programs reach %q %d times, too rarely", name, o[name])
		}
	}
	if most := programs / 100; o["moved, and nothing undone"] > most {
		t.Errorf("%d programs end at an undo that gives nothing back, want at most %d",
			o["moved, and nothing undone"], most)
	}
	t.Log(all.String())
}
