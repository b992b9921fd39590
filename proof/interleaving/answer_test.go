package interleaving

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// answer is the result of a call as its caller sees it. It is comparable.
type answer struct {
	tb.Decision // of TakeAll, only Allowed
	failed      bool
	each        [3]tb.Decision   // of TakeAll
	delays      [3]time.Duration // of Reserve, and of each charge of TakeAll
	receipt     uint64           // digest of what the limiter keeps for a reservation

	// mild has a bit for each decision of a call that takes nothing and is refused because
	// its key is new and the table is full. Only the reference sets it.
	mild uint8
}

// ownBit is the index in mild of the decision itself.
const ownBit = len(answer{}.each)

// explains reports whether got may be the answer to a call that the reference answers with a.
// Both are the same, with one exception: a call that takes nothing and finds a full table is
// answered from the state that the last insert saw. Its refusal may end earlier, or it may be
// granted.
func (a answer) explains(got answer) bool {
	for i := range a.each {
		a.each[i] = milder(a.each[i], got.each[i], a.mild>>i&1 == 1)
	}
	if a.mild>>ownBit&1 == 1 && got.Decision == (tb.Decision{Allowed: true, Remaining: capacity - 1}) {
		a.Decision = got.Decision
	}
	a.Decision = milder(a.Decision, got.Decision, a.mild>>ownBit&1 == 1)
	a.mild, a.receipt = 0, got.receipt
	return a == got
}

// milder returns d, with the wait of got if mild is true and got is a refusal that ends earlier.
func milder(d, got tb.Decision, mild bool) tb.Decision {
	if mild && !got.Allowed && got.RetryAfter > 0 && got.RetryAfter < d.RetryAfter {
		d.RetryAfter = got.RetryAfter
	}
	return d
}

func (a answer) String() string {
	switch {
	case a.failed:
		return "an error"
	case a.each != [3]tb.Decision{}:
		return fmt.Sprintf("%t: %+v after %v", a.Allowed, a.each, a.delays)
	case a.delays[0] > 0:
		return fmt.Sprintf("granted after %v", a.delays[0])
	case a.Allowed:
		return fmt.Sprintf("granted, %d left", a.Remaining)
	}
	return fmt.Sprintf("refused, %d left, retry after %v", a.Remaining, a.RetryAfter)
}
