package fuzz

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// compare runs p on both implementations. If an answer differs, it reports the shortest part of p
// that it finds to differ. moved reports that tb/cas has given nothing back because the bucket has
// moved. The program ends there.
func compare(t *testing.T, p program) (answers []answer, moved bool) {
	t.Helper()
	got, _, moved, agree := agreement(t, p)
	if agree {
		return got, moved
	}
	p = p.shortest(func(p program) bool {
		_, _, _, agree := agreement(t, p)
		return !agree
	})
	got, want, _, _ := agreement(t, p)
	t.Fatalf("%v\ncas   %+v\nmutex %+v", p, got[len(got)-1], want[len(got)-1])
	return nil, false
}

// shortest returns a part of p that fails too, and of which no single call can be left out.
func (p program) shortest(fails func(program) bool) program {
	for size := len(p.calls); size > 0; size /= 2 {
		for at := 0; at+size <= len(p.calls); {
			less := p
			less.calls = slices.Delete(slices.Clone(p.calls), at, at+size)
			if fails(less) {
				p = less
			} else {
				at++
			}
		}
	}
	return p
}

// agreement runs p on both implementations and returns their answers up to the first that differs.
func agreement(t *testing.T, p program) (got, want []answer, moved, agree bool) {
	got, want = both(t, p)
	for i := range got {
		if got[i] != want[i] {
			op, a := p.calls[i].op, got[i]
			moved = op.undoes() && a.lessThan(want[i]) && (op != cancel || a.own == a.ownBefore)
			return got[:i+1], want[:i+1], moved, moved
		}
	}
	return got, want, false, true
}

// both runs p on both implementations. The sleeps of Wait take no time.
func both(t *testing.T, p program) (got, want []answer) {
	synctest.Test(t, func(t *testing.T) {
		var c, m runner
		options := func(r *runner) []tb.Option {
			return []tb.Option{
				tb.WithClock(func() time.Time { return r.now }),
				tb.WithMaxKeys(p.maxKeys), tb.WithOverflow(p.overflow),
			}
		}
		c.renew = func(limit tb.Limit) limiter { return newLimiter(t, 0, limit, options(&c)...) }
		m.renew = func(limit tb.Limit) limiter { return newLimiter(t, 1, limit, options(&m)...) }
		c.limiter, m.limiter = c.renew(p.limit), m.renew(p.limit)
		got, want = c.run(p), m.run(p)
	})
	return got, want
}

// undoes reports whether a call may undo a grant.
func (o op) undoes() bool { return o == cancel || o == wait || o == takeAll }

// lessThan reports whether a differs from b only because the call has left fewer tokens.
func (a *answer) lessThan(b answer) bool {
	same := b
	same.level, same.late, same.own = a.level, a.late, a.own
	return *a == same && a.own.Tokens < b.own.Tokens
}

func TestImplementationsAgreeOnProgramsByHand(t *testing.T) {
	for _, p := range programsByHand {
		t.Run(p.name, func(t *testing.T) { compare(t, p.program) })
	}
}

func FuzzCASvsMutex(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		in := input(data)
		compare(t, in.program(maxKeys))
	})
}

// maxKeys is so small that no insert meets more than 16 stale stamps. So eviction is exact in
// every implementation.
const maxKeys = 12

func TestImplementationsAgreeOnRandomPrograms(t *testing.T) {
	reached := make(outcomes)
	eachProgram(t, *programs, func(rng *rand.ChaCha8) {
		in := randomInput(rng, 500)
		p := in.program(maxKeys)
		answers, moved := compare(t, p)
		reached.count(p, answers, moved)
	})
	tally(t, *programs, reached["granted"]+reached["refused"], 0)
	reached.check(t, *programs) // random programs that reach only half of the contract prove little
}
