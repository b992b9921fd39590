package fuzz

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// paces are the tokens that are supplied between two changes of a limit, about: none, some, so many
// that a debt of 2,147 tokens, or the deepest debt, is paid after some ninety changes, or more than
// any bucket holds. Then tb/cas forgets eras.
var paces = [...]float64{0, 1, 2147 / 90., (1 << 31) / 90, 1 << 46}

// changing returns a program that changes the limit 70 to 200 times, mostly with another capacity.
// Some keys are in the deepest debt, and some are not used for long. The capacities have the same
// units, or any. Readings are late only where tb/cas forgets no era: a bucket of a forgotten era
// that is ahead of the clock would be full.
func (in *input) changing(keys int) program {
	sameUnits := in.below(2) == 0
	limit := func(l tb.Limit) tb.Limit {
		next := in.usualLimit()
		if !sameUnits {
			if next = in.limit(); slow(next) {
				next.Tokens, next.Per = 10, time.Millisecond
			}
		}
		switch in.below(8) {
		case 0:
			next.Capacity = l.Capacity
		case 1, 2, 3:
			next.Tokens, next.Per = l.Tokens, l.Per
		}
		return next
	}
	p := program{maxKeys: keys + 1, limit: limit(in.usualLimit())}
	for i := range keys {
		n := [...]int{1, p.limit.Capacity}[in.below(2)]
		p.calls = append(p.calls, call{op: allowN, key: key(i), n: n})
	}
	pace := paces[in.below(len(paces))]
	rare := 1 + in.below(2)*15 // of calls
	var now time.Duration
	add := func(l tb.Limit, c call, most float64) {
		token := float64(l.Per) / float64(l.Tokens)
		c.step = time.Duration(min(max(float64(c.step), -most*token), most*token))
		if pace > 1 {
			c.step = c.step.Abs()
		}
		if then := now + c.step; then < 0 || then > century/2 {
			c.step = 0
		}
		now += c.step
		p.calls = append(p.calls, c)
	}
	l := p.limit
	for range 70 + in.below(131) {
		token := float64(l.Per) / float64(l.Tokens)
		change := call{op: setLimit, key: key(in.below(keys)), limit: limit(l)}
		change.step = time.Duration(min(pace*token*float64(in.byte())/128, float64(century)))
		add(l, change, 2*pace)
		if l = change.limit; in.below(rare) == 0 {
			add(l, in.call(ending[:], l, keys), 20)
		}
	}
	for range 10 {
		add(l, in.call(ending[:], l, keys), float64(l.Capacity))
	}
	down := call{op: restart, within: time.Duration(in.upTo(uint64(time.Hour)))}
	if in.below(2) == 0 {
		down.limit = limit(l)
	}
	add(l, down, 0)
	for range 5 {
		add(l, in.call(restarted[:], l, keys), float64(l.Capacity))
	}
	return p
}

// ending are calls on a bucket that may be of a forgotten era.
var ending = [...]op{
	allowN, allowN, allowCost, peek, takeAll, reserve, cancel, settle, settle, retake, retake, deepen,
	hold, keep,
}

// restarted are calls on a bucket of a new limiter. None of them lowers a stamp, because a full key
// is not restored, and may be inserted later.
var restarted = [...]op{allowN, allowN, allowCost, peek, reserve, hold, keep}

func TestImplementationsAgreeThroughManyChanges(t *testing.T) {
	n, reached := *programs/25, make(outcomes)
	eachProgram(t, n, func(rng *rand.ChaCha8) {
		in := randomInput(rng, 5000)
		p := in.changing(1 + in.below(4))
		answers, moved := compare(t, p)
		reached.count(p, answers, moved)
	})
	t.Log(reached)
	tally(t, n, reached["granted"]+reached["refused"], 0)
	if n := reached["conversion in debt"]; n < *programs/2 {
		t.Errorf("a capacity changes in debt %d times, too rarely", n)
	}
}
