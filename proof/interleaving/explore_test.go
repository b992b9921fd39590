package interleaving

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
)

// scenario is a program for the explorer: calls by several threads on a small table.
type scenario struct {
	name      string
	maxKeys   int
	overflow  tb.Overflow
	collide   bool  // all keys have the same hash
	oneBucket bool  // the limiter is a cas.Bucket
	tiers     []int // indices in limits, if calls name the tiers of keys
	undone    bool  // the order of eviction may rank a key otherwise than by its stamp
	full      bool  // the table has a full bucket whenever it evicts a key
	moves     bool  // a charge may be undone after its bucket has moved
	shared    bool  // two threads correct a reservation that was made before them
	deep      bool  // one preemption more is followed if maps are tiny
	wide      bool  // it has millions of states: few preemptions are followed
	small     bool  // it is explored also without the flag -all
	medium    bool  // it can be explored without merging states, as small ones can
	before    []call

	first, second, third []call // of the threads; third is nil if there are two
}

// threads returns the calls of each thread.
func (s *scenario) threads() [][]call {
	if s.third == nil {
		return [][]call{s.first, s.second}
	}
	return [][]call{s.first, s.second, s.third}
}

// The methods that a scenario calls.
const (
	take     = iota // AllowAt
	takeOne         // Allow
	peek            // Peek
	reset           // Reset
	takeAll         // TakeAll
	reserve         // Reserve
	cancel          // Reservation.Cancel
	settle          // Reservation.Settle
	setLimit        // SetLimit
	takeIn          // Take of a charge of ChargeIn
	checkIn         // Peek of a charge of ChargeIn
	setTier         // SetTier
	hold            // Hold
	keepIn          // Take of a charge of ChargeIn that keeps 4 tokens
)

var names = [...]string{
	"take", "take one", "peek", "reset", "take all", "reserve", "cancel", "settle", "set limit",
	"take in", "check in", "set tier", "hold", "keep in",
}

// call is a call of a thread. A cancel or settle is a call on the latest reservation that the
// thread has made on the key, or on one that was made before all threads.
type call struct {
	op  int
	key string  // with a digit for the tier that the call names; of setTier, only the digit
	at  float64 // the reading, in seconds
	n   int     // tokens; of setLimit and setTier, an index in limits; of hold, seconds
}

func (c call) String() string {
	if c.setsLimit() {
		return fmt.Sprintf("%s %s: %+v at %vs", names[c.op], c.key, limits[c.n], c.at)
	}
	return fmt.Sprintf("%s %s: %d at %vs", names[c.op], c.key, c.n, c.at)
}

// tier returns the tier that a call names.
func (c call) tier() int { return int(c.key[len(c.key)-1] - '0') }

// setsLimit reports whether a call changes the limit.
func (c call) setsLimit() bool { return c.op == setLimit || c.op == setTier }

// looks reports whether a call takes nothing.
func (c call) looks() bool { return c.op == peek || c.op == checkIn }

// exhausted is a reading at which a bucket whose base is at reading 0 has exhausted its delta.
const exhausted = 300_000

// timeOf returns the reading of a call.
func timeOf(at float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(at * float64(time.Second)))
}

// capacity is the capacity of all buckets at first. They are refilled at one token a second.
const capacity = 10

// limits are the limits that a scenario sets. All scenarios begin with the first one.
var limits = []tb.Limit{
	{Capacity: capacity, Tokens: 1, Per: time.Second},
	fast:  {Capacity: capacity, Tokens: 2, Per: time.Second},
	slow:  {Capacity: capacity, Tokens: 1, Per: 2 * time.Second},
	large: {Capacity: 2 * capacity, Tokens: 1, Per: time.Second},
	small: {Capacity: 4, Tokens: 1, Per: time.Second},
	huge:  {Capacity: 100, Tokens: 2, Per: time.Second}, // with units of another size

	nanos:  {Capacity: capacity, Tokens: 1, Per: time.Nanosecond},
	hourly: {Capacity: capacity, Tokens: 1, Per: time.Hour},
}

const (
	fast = 1 + iota
	slow
	large
	small
	huge
	nanos
	hourly
)

func (s *scenario) options(now func() time.Time) []tb.Option {
	return []tb.Option{
		tb.WithClock(now), tb.WithMaxKeys(max(s.maxKeys, 1)), tb.WithOverflow(s.overflow),
	}
}

// setsLimit reports whether a call changes the limit.
func (s *scenario) setsLimit() bool {
	return slices.ContainsFunc(slices.Concat(s.threads()...), call.setsLimit)
}

// tierLimits returns the limits of the tiers, or nil if there is one limit.
func (s *scenario) tierLimits() (all []tb.Limit) {
	for _, i := range s.tiers {
		all = append(all, limits[i])
	}
	return all
}

// client makes the calls of one thread. It has a clock, and the reservations that the thread has
// made, by key.
type client struct {
	now  *time.Time
	held map[string]tb.Reservation
}

func newClient() *client {
	return &client{now: new(time.Time), held: make(map[string]tb.Reservation)}
}

// after returns a client with a clock of its own and the reservations of p.
func (p *client) after() *client {
	return &client{now: new(time.Time), held: maps.Clone(p.held)}
}

// explore runs a variant of the code through the schedules of s, and checks them with m.
func (s scenario) explore(variant string, m *oracle, o modelcheck.Options) modelcheck.Result {
	return modelcheck.Explore(func() modelcheck.Program {
		before := newClient()
		clients := []*client{before} // before is also the client of the aftermath
		l, err := registry.Variants[variant](registry.Config{
			Limit:     limits[0],
			Tiers:     s.tierLimits(),
			Options:   s.options(func() time.Time { return *clients[modelcheck.Thread()+1].now }),
			Keys:      slices.Concat(s.keys(), newKeys),
			Collide:   s.collide,
			OneBucket: s.oneBucket,
			SetsLimit: s.setsLimit(),
		})
		if err != nil {
			panic(err)
		}
		w := newWatch(l, &s)
		for _, c := range s.before {
			before.call(l, c)
		}
		p := modelcheck.Program{
			Invariant: func() error {
				w.stepped()
				return l.CheckSize()
			},
			Returned: w.check,
			Recorded: w.recorded,
			Format:   formatWord,
			Final: func(history [][]modelcheck.Returned) error {
				if err := l.CheckTable(s.undone); err != nil {
					return err
				}
				if n := l.Stats().EvictedInDebt; n > 0 && s.full {
					return fmt.Errorf("%d debts are forgiven while a full bucket is in the table", n)
				}
				return m.judge(history, s.aftermath(l, before))
			},
		}
		for i, calls := range s.threads() {
			var thread []modelcheck.Call
			of := before.after()
			clients = append(clients, of)
			for _, c := range calls {
				thread = append(thread, modelcheck.Call{Name: c, Do: func() any {
					w.called(i, c)
					return of.call(l, c)
				}})
			}
			p.Threads = append(p.Threads, thread)
		}
		return p
	}, o)
}

// formatWord formats the value of a variable for a trace.
func formatWord(v uint64) string {
	switch {
	case v == ^uint64(0):
		return "evicted"
	case v>>63 == 1:
		return fmt.Sprintf("sealed, %x", v&^(1<<63))
	}
	return fmt.Sprintf("%x", v)
}
