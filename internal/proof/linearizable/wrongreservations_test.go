package linearizable

import (
	"context"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/internal/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
)

// flaw is what is wrong with a wrongBucket.
type flaw int

const (
	noFlaw         flaw = iota
	sharesSlots         // Reserve loads and then stores
	restores            // Cancel brings the bucket back to its state before Reserve
	movesSlots          // Cancel gives back under a later reservation
	forgivesExcess      // Settle charges no more than the bucket has
	losesGrants         // Settle loads and then stores
	refills             // SetLimit fills the bucket
	changesPast         // SetLimit supplies the new rate for the time before it
)

// wrongBucket is a bucket that agrees with the oracle at readings of whole seconds that do not
// decrease, apart from its flaw.
type wrongBucket struct {
	flaw
	clock *sharedClock
	stop  func()

	full           time.Duration // when the bucket will be full
	slot           time.Duration // of the latest reservation
	since          time.Duration // of the latest grant
	capacity, rate time.Duration // rate is the time of a token
}

func (b *wrongBucket) now() time.Duration { return b.clock.read().Sub(span.Origin) }

func (b *wrongBucket) left(at time.Duration) time.Duration {
	return b.capacity*b.rate - max(0, b.full-at)
}

func (b *wrongBucket) AllowAt(t time.Time, _ string, tokens float64) (tb.Decision, error) {
	at := t.Sub(span.Origin)
	cost := time.Duration(tokens) * b.rate
	left := b.left(at)
	if left < cost {
		return tb.Decision{RetryAfter: cost - left, Remaining: int(max(0, left) / b.rate)}, nil
	}
	b.full, b.since = max(b.full, at)+cost, at
	return tb.Decision{Allowed: true, Remaining: int((left - cost) / b.rate)}, nil
}

func (b *wrongBucket) Reserve(_ context.Context, _ string, cost float64) (tb.Reservation, error) {
	at := b.now()
	before := *b
	units := time.Duration(cost) * b.rate
	next := max(b.full, at) + units
	if b.flaw == sharesSlots {
		b.stop()
	}
	b.full, b.slot, b.since = next, next-b.capacity*b.rate, at
	slot := b.slot
	held := wrongHeld{func() {
		switch {
		case b.flaw == restores:
			b.full, b.slot = before.full, before.slot
		case b.slot > slot && b.flaw != movesSlots:
		default:
			b.full, b.slot = b.full-units, before.slot
		}
	}, func(actual float64) {
		now := b.now()
		next := max(b.full+time.Duration(actual)*b.rate-units, now)
		if b.flaw == losesGrants {
			b.stop()
		}
		if b.flaw == forgivesExcess {
			next = min(next, now+b.capacity*b.rate)
		}
		b.full = next
	}}
	d := tb.Decision{Allowed: true, Remaining: int(max(0, b.left(at)) / b.rate)}
	return tb.NewReservation(d, max(0, slot-at), held), nil
}

func (b *wrongBucket) SetLimit(l tb.Limit) error {
	now := b.now()
	left := b.left(now)
	if b.flaw == refills {
		left = time.Duration(l.Capacity) * b.rate
	}
	rate := l.Per / time.Duration(l.Tokens)
	if b.flaw == changesPast {
		left += (now - b.since) * (b.rate - rate) / rate
	}
	left = min(left*rate/b.rate, time.Duration(l.Capacity)*rate)
	b.capacity, b.rate = time.Duration(l.Capacity), rate
	b.full = now + b.capacity*b.rate - left
	return nil
}

func (*wrongBucket) AllowN(context.Context, string, float64) (tb.Decision, error) {
	panic("called")
}
func (*wrongBucket) Peek(context.Context, string) (tb.Decision, error) { panic("called") }
func (*wrongBucket) Reset(string)                                      { panic("called") }

// wrongHeld is what a wrongBucket keeps for a reservation.
type wrongHeld struct {
	cancel func()
	settle func(actual float64)
}

func (h wrongHeld) Cancel() { h.cancel() }

func (h wrongHeld) Settle(actual float64) error {
	h.settle(actual)
	return nil
}

const second = time.Second

// reservationScripts are calls of one goroutine. During the call number stopped, another goroutine
// makes the call other, if there is one.
var reservationScripts = []struct {
	name    string
	flaw    flaw
	calls   func() []*request
	stopped int
	other   *request
}{
	{"two reservations share a slot", sharesSlots, func() []*request {
		return []*request{allow(0, "a", 10), reserved(0, "a", 2)}
	}, 1, reserved(0, "a", 3)},
	{"Cancel brings an old state back", restores, func() []*request {
		r := reserved(0, "a", 3)
		return []*request{r, allow(0, "a", 4), correction(cancel, 0, r, 0), allow(0, "a", 10)}
	}, 0, nil},
	{"Cancel moves the slot of a later reservation", movesSlots, func() []*request {
		r := reserved(0, "a", 2)
		return []*request{
			allow(0, "a", 10), r, reserved(0, "a", 3), correction(cancel, 0, r, 0), reserved(0, "a", 1),
		}
	}, 0, nil},
	{"Settle forgives the excess", forgivesExcess, func() []*request {
		r := reserved(0, "a", 2)
		return []*request{allow(0, "a", 8), r, correction(settle, 0, r, 5), allow(2*second, "a", 1)}
	}, 0, nil},
	{"Settle loses a grant", losesGrants, func() []*request {
		r := reserved(0, "a", 4)
		return []*request{r, correction(settle, 0, r, 1), allow(0, "a", 7)}
	}, 1, allow(0, "a", 5)},
	{"SetLimit fills the bucket", refills, func() []*request {
		l := tb.Limit{Capacity: 20, Tokens: 1, Per: second}
		return []*request{allow(0, "a", 10), {verb: setLimit, limit: l}, allow(0, "a", 1)}
	}, 0, nil},
	{"SetLimit changes the past", changesPast, func() []*request {
		l := tb.Limit{Capacity: 10, Tokens: 2, Per: second}
		return []*request{
			allow(0, "a", 10), {verb: setLimit, at: 4 * second, limit: l}, allow(4*second, "a", 6),
		}
	}, 0, nil},
}

// TestWrongReservationsAreNotLinearizable runs each script on a bucket with the flaw, and on the
// same bucket without it.
func TestWrongReservationsAreNotLinearizable(t *testing.T) {
	for _, script := range reservationScripts {
		t.Run(script.name, func(t *testing.T) {
			s := setup{tb.Limit{Capacity: 10, Tokens: 1, Per: second}, 100, tb.ForgiveLeast}
			for _, f := range []flaw{noFlaw, script.flaw} {
				clock := new(sharedClock)
				var during func()
				b := &wrongBucket{flaw: f, clock: clock, capacity: 10, rate: second}
				b.stop = func() {
					if f := during; f != nil {
						during = nil
						f()
					}
				}
				r := newRecorder(newSession(b), clock, 2)
				for i, in := range script.calls() {
					if i == script.stopped && script.other != nil {
						during = func() { r.call(1, script.other) }
					}
					r.call(0, in)
				}
				history := r.history()
				if porcupine.CheckOperations(ledgerModel(&s, false), history) != (f == noFlaw) {
					logHistory(t, &s, history)
					t.Errorf("flaw %d: linearizable: %v", f, f != noFlaw)
				}
			}
		})
	}
}
