package tb

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var errDown = errors.New("the store is down")

// scripted is a charge with given answers. It records the calls that it gets.
type scripted struct {
	name        string
	check, take any // a Decision or an error
	log         *[]string
}

func (c scripted) answer(method string, a any) (Decision, error) {
	*c.log = append(*c.log, method+" "+c.name)
	if err, ok := a.(error); ok {
		return Decision{}, err
	}
	return a.(Decision), nil
}

func (c scripted) Peek(time.Time) (Decision, error) { return c.answer("check", c.check) }
func (c scripted) Take(time.Time) (Decision, error) { return c.answer("take", c.take) }
func (c scripted) Cancel()                          { *c.log = append(*c.log, "undo "+c.name) }

// inTier is a charge that names the tier of its key.
type inTier struct{ scripted }

func (c inTier) Enter(time.Time) { *c.log = append(*c.log, "enter "+c.name) }

func TestTakeAllChecksAllThenTakesOrUndoes(t *testing.T) {
	granted := func(left int) Decision { return Decision{Allowed: true, Remaining: left} }
	refused := Decision{RetryAfter: time.Second}
	for _, tt := range []struct {
		name      string
		charges   []scripted // in tiers, if the name is a capital letter
		steps     []string
		decisions []Decision
		allowed   bool
		err       error
	}{
		{
			name:      "one",
			charges:   []scripted{{name: "a", take: granted(1)}},
			steps:     []string{"take a"},
			decisions: []Decision{granted(1)}, allowed: true,
		}, {
			name:      "one, refused",
			charges:   []scripted{{name: "a", take: refused}},
			steps:     []string{"take a"},
			decisions: []Decision{refused},
		}, {
			name: "two",
			charges: []scripted{
				{name: "a", check: granted(2), take: granted(1)},
				{name: "b", check: granted(4), take: granted(3)},
			},
			steps:     []string{"check a", "check b", "take a", "take b"},
			decisions: []Decision{granted(1), granted(3)}, allowed: true,
		}, {
			name:      "check of the first refuses",
			charges:   []scripted{{name: "a", check: refused}, {name: "B", check: granted(4)}},
			steps:     []string{"check a", "check B"},
			decisions: []Decision{refused, granted(4)},
		}, {
			name: "checks in tiers refuse",
			charges: []scripted{
				{name: "A", check: refused}, {name: "b", check: granted(4)}, {name: "C", check: refused},
			},
			steps:     []string{"check A", "check b", "check C", "enter A", "enter C"},
			decisions: []Decision{refused, granted(4), refused},
		}, {
			name: "take of the third refuses",
			charges: []scripted{
				{name: "a", check: granted(2), take: granted(1)},
				{name: "b", check: granted(4), take: granted(3)},
				{name: "c", check: granted(6), take: refused}, {name: "d", check: granted(8)},
			},
			steps: []string{
				"check a", "check b", "check c", "check d", "take a", "take b", "take c", "undo b", "undo a",
			},
			decisions: []Decision{granted(1), granted(3), refused, granted(8)},
		}, {
			name:      "check of the second fails",
			charges:   []scripted{{name: "a", check: refused}, {name: "b", check: errDown}, {name: "c"}},
			steps:     []string{"check a", "check b"},
			decisions: []Decision{refused, {}, {}}, err: errDown,
		}, {
			name: "take of the second fails",
			charges: []scripted{
				{name: "a", check: granted(2), take: granted(1)}, {name: "b", check: granted(4), take: errDown},
			},
			steps:     []string{"check a", "check b", "take a", "take b", "undo a"},
			decisions: []Decision{granted(1), {}}, err: errDown,
		},
	} {
		var steps []string
		var charges []Charge
		for _, c := range tt.charges {
			c.log = &steps
			if c.name < "a" {
				charges = append(charges, inTier{c})
				continue
			}
			charges = append(charges, c)
		}
		decisions, allowed, err := TakeAll(time.Unix(0, 0), charges, nil)
		if allowed != tt.allowed || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %t, %v, want %t, %v", tt.name, allowed, err, tt.allowed, tt.err)
		}
		if !slices.Equal(steps, tt.steps) {
			t.Errorf("%s: got steps %q, want %q", tt.name, steps, tt.steps)
		}
		if !slices.Equal(decisions, tt.decisions) {
			t.Errorf("%s: got decisions %+v, want %+v", tt.name, decisions, tt.decisions)
		}
	}
}

// A caller passes the decisions of the call before, to allocate nothing.
func TestTakeAllForgetsTheCallBefore(t *testing.T) {
	var steps []string
	before := []Decision{{Allowed: true, Remaining: 7}, {Allowed: true, Remaining: 8}}
	decisions, _, err := TakeAll(time.Unix(0, 0), []Charge{
		scripted{name: "a", check: errDown, log: &steps}, scripted{name: "b", log: &steps},
	}, before)
	if want := make([]Decision, 2); !errors.Is(err, errDown) || !slices.Equal(decisions, want) {
		t.Errorf("got %+v, %v, want no decisions and the error", decisions, err)
	}
}
