package tb

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var errDown = errors.New("the store is down")

// scripted is a charge that answers what it is told to, and notes that it was asked.
type scripted struct {
	name        string
	check, take any // a Decision or an error
	log         *[]string
}

func (c scripted) answer(what string, a any) (Decision, error) {
	*c.log = append(*c.log, what+" "+c.name)
	if err, ok := a.(error); ok {
		return Decision{}, err
	}
	return a.(Decision), nil
}

func (c scripted) Check(time.Time) (Decision, error) { return c.answer("check", c.check) }
func (c scripted) Take(time.Time) (Decision, error)  { return c.answer("take", c.take) }
func (c scripted) Undo()                             { *c.log = append(*c.log, "undo "+c.name) }

func TestTakeAllStepByStep(t *testing.T) {
	yes := func(left int) Decision { return Decision{Allowed: true, Remaining: left} }
	no := Decision{RetryAfter: time.Second}
	for _, tt := range []struct {
		name      string
		charges   []scripted
		steps     []string
		decisions []Decision
		allowed   bool
		err       error
	}{
		{
			name:      "one",
			charges:   []scripted{{name: "a", take: yes(1)}},
			steps:     []string{"take a"},
			decisions: []Decision{yes(1)}, allowed: true,
		}, {
			name:      "one that is refused",
			charges:   []scripted{{name: "a", take: no}},
			steps:     []string{"take a"},
			decisions: []Decision{no},
		}, {
			name: "two",
			charges: []scripted{
				{name: "a", check: yes(2), take: yes(1)}, {name: "b", check: yes(4), take: yes(3)},
			},
			steps:     []string{"check a", "check b", "take a", "take b"},
			decisions: []Decision{yes(1), yes(3)}, allowed: true,
		}, {
			name:      "the first is empty",
			charges:   []scripted{{name: "a", check: no}, {name: "b", check: yes(4)}},
			steps:     []string{"check a", "check b"},
			decisions: []Decision{no, yes(4)},
		}, {
			name: "the third is emptied",
			charges: []scripted{
				{name: "a", check: yes(2), take: yes(1)}, {name: "b", check: yes(4), take: yes(3)},
				{name: "c", check: yes(6), take: no}, {name: "d", check: yes(8)},
			},
			steps: []string{
				"check a", "check b", "check c", "check d", "take a", "take b", "take c", "undo b", "undo a",
			},
			decisions: []Decision{yes(1), yes(3), no, yes(8)},
		}, {
			name:      "the second cannot be checked",
			charges:   []scripted{{name: "a", check: no}, {name: "b", check: errDown}, {name: "c"}},
			steps:     []string{"check a", "check b"},
			decisions: []Decision{no, {}, {}}, err: errDown,
		}, {
			name: "the second cannot be taken",
			charges: []scripted{
				{name: "a", check: yes(2), take: yes(1)}, {name: "b", check: yes(4), take: errDown},
			},
			steps:     []string{"check a", "check b", "take a", "take b", "undo a"},
			decisions: []Decision{yes(1), {}}, err: errDown,
		},
	} {
		var steps []string
		var charges []Charge
		for _, c := range tt.charges {
			c.log = &steps
			charges = append(charges, c)
		}
		decisions := make([]Decision, len(charges))
		allowed, err := TakeAll(time.Unix(0, 0), charges, decisions)
		if allowed != tt.allowed || !errors.Is(err, tt.err) {
			t.Errorf("%s: %t, %v", tt.name, allowed, err)
		}
		if !slices.Equal(steps, tt.steps) {
			t.Errorf("%s: %q, want %q", tt.name, steps, tt.steps)
		}
		if !slices.Equal(decisions, tt.decisions) {
			t.Errorf("%s: %+v, want %+v", tt.name, decisions, tt.decisions)
		}
	}
}
