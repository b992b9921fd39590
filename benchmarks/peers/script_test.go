package peers

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// script is a sequence of calls on a new limiter, with the answers.
type script struct {
	limit   tb.Limit
	maxKeys int
	moves   []move
}

// move is one call, or several of cost 1, at a reading of the clock.
type move struct {
	at     time.Duration
	key    string
	n      int64 // the cost; an int on every processor but for the largest costs
	times  int   // calls of that cost, if not one
	want   outcome
	wait   time.Duration // what a refusal tells, if not 0
	others []move        // calls made during this one
}

// play makes the calls and returns the first answer that is not as written. It says by
// how many tokens the grants to the key of the last call exceed the bound.
func (sc script) play(w *world, s subject) (wrong string, over float64) {
	d, b := s.new(w, sc.limit, max(1, sc.maxKeys)), newIdeal(sc.limit)
	victim := sc.moves[len(sc.moves)-1].key
	var play func(m move)
	play = func(m move) {
		w.set(m.at)
		for range max(1, m.times) {
			got := m.want
			switch {
			case m.others != nil:
				got = d.overtaken(m.key, int(m.n), func() {
					for _, other := range m.others {
						play(other)
					}
				})
			case m.wait != 0:
				if wait := d.ask(m.key, int(m.n)); wait != m.wait {
					got = outcome("wait " + wait.String())
				}
			default:
				got = d.take(m.key, int(m.n))
			}
			if got != m.want && wrong == "" {
				wrong = fmt.Sprintf("%s: %s", m.line(), got)
			}
			if got.got() && m.n > 0 && m.key == victim {
				over = max(over, b.take(max(m.at, w.reading()), int(m.n)))
			}
		}
	}
	for _, m := range sc.moves {
		play(m)
	}
	return wrong, over
}

// fits says whether an int holds the costs.
func (sc script) fits() bool {
	for _, m := range sc.moves {
		if int64(int(m.n)) != m.n {
			return false
		}
	}
	return true
}

func (m move) line() string {
	call := "take " + strconv.FormatInt(m.n, 10)
	if m.times > 1 {
		call += ", " + strconv.Itoa(m.times) + " times"
	}
	if m.key != "" {
		call = m.key + ": " + call
	}
	answer := string(m.want)
	if m.wait != 0 {
		answer += fmt.Sprint(", again in ", m.wait)
	}
	if m.others != nil {
		answer += ", begun before and decided after those that follow"
	}
	return strings.TrimRight(fmt.Sprintf("t = %-13v %-30s %s", m.at, call, answer), " ")
}

// String is the script as it stands in the document.
func (sc script) String() string {
	var b strings.Builder
	per := strings.TrimPrefix(strings.TrimSuffix(sc.limit.Per.String(), "0m0s"), "1")
	unit := map[string]string{"s": "a second", "h": "an hour"}[per]
	fmt.Fprintf(&b, "capacity %d, %d %s", sc.limit.Capacity, sc.limit.Tokens, unit)
	if sc.maxKeys > 0 {
		fmt.Fprintf(&b, ", at most %d keys", sc.maxKeys)
	}
	b.WriteByte('\n')
	for _, m := range sc.moves {
		fmt.Fprintln(&b, m.line())
		for _, other := range m.others {
			fmt.Fprintln(&b, other.line())
		}
	}
	return b.String()
}
