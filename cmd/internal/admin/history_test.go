package admin

import (
	"fmt"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

func TestHistory(t *testing.T) {
	h := &history{}
	id := ruleID{"", "r"}
	second := func(granted, refused, shadow uint64) {
		h.addSecond([]httplimit.RuleStats{{Rule: "r", Granted: granted, Refused: refused,
			ShadowRefused: shadow}})
	}
	last := func(n int) string {
		granted, refused := h.perSecond(id)
		if len(granted) != historySeconds || len(refused) != historySeconds {
			t.Fatalf("%d and %d seconds", len(granted), len(refused))
		}
		return fmt.Sprint(granted[historySeconds-n:], refused[historySeconds-n:])
	}
	second(5, 0, 0)
	second(8, 2, 0)
	second(8, 2, 4)
	if got := last(4); got != "[0 5 3 0] [0 0 2 4]" {
		t.Error(got)
	}
	second(1, 0, 0) // a new rule of the same name
	if got := last(2); got != "[0 1] [4 0]" {
		t.Error(got)
	}
	for range historySeconds - 1 {
		second(1, 0, 0)
	}
	if granted, _ := h.perSecond(id); granted[0] != 1 || granted[1] != 0 {
		t.Error(granted)
	}
	h.addSecond(nil)
	if granted, _ := h.perSecond(id); granted == nil || len(granted) > 0 { // or JSON has a null
		t.Error(granted)
	}
}
