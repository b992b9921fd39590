package load

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var (
	loadCalls = flag.Int("calls", 1_500_000, "how many calls the load tests make")
	realTime  = flag.Duration("real", 0, "how long TestRealClock calls a limiter; one round if 0")
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	callers = 256
	maxLate = 2 * time.Millisecond // of a reading
)

// load describes the concurrent calls on a limiter: each takes a token of one of a few hot keys,
// with a reading that may be late.
type load struct {
	limit    tb.Limit
	keys     int
	calls    int
	real     bool // the clock is real; otherwise it advances by a microsecond a call
	flood    int  // goroutines that call with new keys, one call for each call on a hot key
	maxKeys  int
	overflow tb.Overflow
}

// The first calls drain the hot keys, and none of them is full again, except in the last load,
// where they evict each other. The first load grants nine calls of ten, so that a lost grant
// shows.
var loads = []struct {
	name string
	load
}{
	{"one key", load{limit: perSecond(1000, 900_000), keys: 1, maxKeys: 64}},
	{"four keys", load{limit: perSecond(1000, 100_000), keys: 4, maxKeys: 64}},
	{"real clock", load{limit: perSecond(1<<20, 1000), keys: 4, maxKeys: 64, real: true}},
	{"flood, ForgiveLeast", load{limit: perSecond(1000, 1000), keys: 2, maxKeys: 64, flood: 16}},
	{"flood, RefuseNew", load{
		limit: perSecond(1000, 1000), keys: 2, maxKeys: 64, flood: 16, overflow: tb.RefuseNew,
	}},
	{"eviction of hot keys", load{limit: perSecond(100, 10_000), keys: 3, maxKeys: 2}},
}

func perSecond(capacity int, tokens int64) tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: tokens, Per: time.Second}
}

// evictsHotKeys reports whether the hot keys evict each other.
func (ld *load) evictsHotKeys() bool { return ld.keys > ld.maxKeys }

// loaded has the methods of a limiter that a load calls.
type loaded interface {
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
	Stats() tb.Stats
}

// running is a load on a limiter.
type running struct {
	*load
	loaded
	began                time.Time
	now, events, flooded atomic.Int64
}

func (ld *load) on(l loaded) *running { return &running{load: ld, loaded: l, began: time.Now()} }

func (r *running) clock() time.Duration {
	if r.real {
		return time.Since(r.began)
	}
	return time.Duration(r.now.Add(int64(time.Microsecond)))
}

func (r *running) call(key, n int, at time.Duration) record {
	c := record{key: key, n: n, at: at}
	if r.evictsHotKeys() {
		c.forgivenBefore = r.Stats().Forgiven
	}
	c.made = r.events.Add(1) - 1
	d, _ := r.AllowAt(r.began.Add(at), "hot "+strconv.Itoa(key), float64(n))
	if r.evictsHotKeys() {
		c.forgivenAfter = r.Stats().Forgiven
	}
	c.allowed, c.done = d.Allowed, r.events.Add(1)-1
	return c
}

// drain takes the capacity of each hot key.
func (r *running) drain() (records []record) {
	for key := range r.keys {
		records = append(records, r.call(key, r.limit.Capacity, 0))
	}
	return records
}

// round makes calls on the hot keys beside the flood.
func (r *running) round(calls int) []record {
	records := make([][]record, callers)
	var hot, flood sync.WaitGroup
	var over atomic.Bool
	for i := range callers {
		hot.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(r.events.Load())))
			for range calls / callers {
				for r.flood > 0 && r.flooded.Load()+1000 < r.events.Load()/2 {
					runtime.Gosched() // let the flood keep up
				}
				at := r.clock() - time.Duration(rng.Int64N(int64(maxLate)+1))
				if rng.IntN(64) == 0 {
					runtime.Gosched() // makes the reading later still
				}
				records[i] = append(records[i], r.call(rng.IntN(r.keys), 1, max(0, at)))
			}
		})
	}
	for range r.flood {
		flood.Go(func() {
			for !over.Load() {
				if r.flooded.Load() > r.events.Load()/2 {
					runtime.Gosched()
					continue
				}
				key := "new " + strconv.FormatInt(r.flooded.Add(1), 10)
				_, _ = r.AllowAt(r.began.Add(r.clock()), key, 1)
			}
		})
	}
	hot.Wait()
	over.Store(true)
	flood.Wait()
	return slices.Concat(records...)
}

// takeRest takes all tokens that are left.
func (r *running) takeRest() (records []record) {
	end := r.clock()
	for key := range r.keys {
		for {
			c := r.call(key, 1, end)
			records = append(records, c)
			if !c.allowed {
				break
			}
		}
	}
	return records
}

func TestBoundUnderLoad(t *testing.T) {
	for _, ld := range loads {
		for _, impl := range []string{"cas", "mutex"} {
			t.Run(ld.name+", "+impl, func(t *testing.T) {
				ld.calls = *loadCalls / len(loads) / 2
				if testing.Short() {
					ld.calls /= 10
				}
				options := []tb.Option{tb.WithMaxKeys(ld.maxKeys), tb.WithOverflow(ld.overflow)}
				var l loaded
				var err error
				if impl == "cas" {
					l, err = cas.New[string](ld.limit, options...)
				} else {
					l, err = mutex.New[string](ld.limit, options...)
				}
				if err != nil {
					t.Fatal(err)
				}
				ld.check(t, l)
			})
		}
	}
}

// TestRealClock has hot keys and a flood of new keys in a small table, by the machine's clock and
// for as long as -real says. scripts/soak-core runs processes with other settings of the runtime.
func TestRealClock(t *testing.T) {
	ld := &load{
		// A bucket from which nothing is taken is full after three hours. So no bucket is full on a busy
		// machine, either.
		limit: perSecond(1<<20, 100), keys: 4, maxKeys: 64, flood: 2, real: true, calls: 50 * callers,
	}
	l, err := cas.New[string](ld.limit, tb.WithMaxKeys(ld.maxKeys))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("GOMAXPROCS=%d GOGC=%s", runtime.GOMAXPROCS(0), os.Getenv("GOGC"))
	ld.check(t, l)
}

// memory is what must not grow, with the heap in bytes.
type memory struct{ heap, goroutines int }

func measure() memory {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return memory{int(m.HeapAlloc), runtime.NumGoroutine()}
}

// check puts the load on l, by the real clock again and again, and checks the grants from the first
// call to the last. From a quarter of that time on, the process must not grow.
func (ld *load) check(t *testing.T, l loaded) {
	r := ld.on(l)
	all := newJudges(ld.limit, ld.keys)
	playBack(all, r.drain())
	var early memory
	for rounds := 0; rounds == 0 || ld.real && r.clock() < *realTime; rounds++ {
		if early == (memory{}) && rounds > 0 && r.clock() >= *realTime/4 {
			early = measure()
		}
		playBack(all, r.round(ld.calls))
	}
	if late := measure(); early != (memory{}) {
		t.Logf("%+v after a quarter of the time, %+v at the end", early, late)
		if late.heap > early.heap+max(1<<20, early.heap/10) ||
			late.goroutines > early.goroutines+callers { // those of a round may still be ending
			t.Error("the process grows")
		}
	}
	playBack(all, r.takeRest())
	stats := l.Stats()
	evicted := stats.EvictedInDebt
	if ld.overflow == tb.RefuseNew {
		evicted = stats.EvictedFull
	}
	if (ld.flood > 0 || ld.evictsHotKeys()) && evicted < uint64(ld.calls/100) {
		t.Errorf("%+v: hardly any eviction", stats)
	}
	granted, most := 0, 0
	for key, a := range all {
		// The last call was made at the latest reading and refused. So all whole tokens of
		// the bound were granted. They may be a quantum more or less, because the clock of
		// the limiter starts at a fraction of a unit.
		per := int64(ld.limit.Per)
		bound := int((a.most(a.latestDone) + a.quantum()) / per)
		least := int((a.most(a.latestDone) - a.quantum()) / per)
		granted += a.granted
		most += bound
		t.Logf("key %d: %d of %d granted, %d refusals", key, a.granted, bound, a.refusals)
		if a.overdrawn > 0 || a.lost > 0 && !ld.evictsHotKeys() {
			t.Errorf("%d rounds violate C1, and %d refusals C2; %s", a.overdrawn, a.lost, a.first)
		}
		if (a.granted < least || a.granted > bound) && !ld.evictsHotKeys() {
			t.Errorf("%d granted, want %d to %d", a.granted, least, bound)
		}
		if a.refusals < ld.calls/ld.keys/20 && !ld.evictsHotKeys() {
			t.Errorf("only %d refusals: the load does not exceed the bound", a.refusals)
		}
	}
	if ld.evictsHotKeys() { // all forgiven tokens were of hot keys
		t.Logf("%d of %d granted, %v forgiven", granted, most, stats.Forgiven)
		if granted <= most || float64(granted) > float64(most)+stats.Forgiven {
			t.Errorf("%d granted, want more than %d, but at most the %v forgiven",
				granted, most, stats.Forgiven)
		}
	}
}
