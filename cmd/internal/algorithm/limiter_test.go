package algorithm

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestUnknownNames(t *testing.T) {
	for _, name := range []string{"", "window", "GCRA"} {
		_, err := New(name, newLimit(t, 1, 1, 1), 1)
		if err == nil || !strings.Contains(err.Error(), "token-bucket, fixed-window") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Under every algorithm an idle key gets the whole burst, keys are apart, a cost above the burst is
// refused, and a refused request takes nothing.
func TestAllAlgorithms(t *testing.T) {
	const start = 1_700_000_000 * second
	for _, name := range Names {
		l := newLimit(t, 10, 5, 1e9)
		limiter := newLimiter(t, name, l)
		for i := range uint64(5) {
			now := start + 3*i*l.window
			if limiter.Take("other", now, l.capacity+1).Granted {
				t.Errorf("%s: a cost above the burst is granted", name)
			}
			if !limiter.Take("other", now, l.capacity).Granted {
				t.Errorf("%s: the burst is refused", name)
			}
			if n := granted(limiter, now, 10); n != 10 {
				t.Errorf("%s: %d of a burst, want 10", name, n)
			}
			if n := granted(limiter, now, 10); n != 0 {
				t.Errorf("%s: %d beyond the burst", name, n)
			}
		}
		if s := limiter.Stats(); s.Keys != 2 || s.Forgotten != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// An instant that steps back counts as the latest one of its key, and keys have times of their own.
func TestTheTimeOfAKeyNeverStepsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, name := range Names {
		l := newLimit(t, 10, 5, 1e9)
		limiter, inOrder := newLimiter(t, name, l), newLimiter(t, name, l)
		latest := map[string]uint64{}
		now, refused := 1_700_000_000*second, 0
		for i := range 2000 {
			now += r.Uint64N(second / 10)
			key, instant := strconv.Itoa(r.IntN(3)), now-r.Uint64N(5*second)
			latest[key] = max(latest[key], instant)
			got := limiter.Take(key, instant, unitsPerToken)
			want := inOrder.Take(key, latest[key], unitsPerToken)
			if !want.Granted {
				refused++
			}
			if name == "token-bucket" { // which has no time of the key
				want.Leaves = instant
			}
			if got != want {
				t.Fatalf("%s, request %d: %+v, want %+v", name, i, got, want)
			}
		}
		if refused == 0 {
			t.Errorf("%s refused nothing", name)
		}
	}
}

// A table never has more keys than its bound. A key that it forgets is new when it comes back, and
// is counted only if it was not idle.
func TestTablesAreBounded(t *testing.T) {
	for _, name := range Names {
		limiter, err := New(name, newLimit(t, 10, 10, 1e9), 3)
		if err != nil {
			t.Fatal(err)
		}
		take := func(key string, now uint64) (n int) {
			for n < 20 && limiter.Take(key, now, unitsPerToken).Granted {
				n++
			}
			return n
		}
		for i := range uint64(3) {
			take(strconv.FormatUint(i, 10), 10*second+i)
		}
		if n := take("0", 10*second+5); n != 0 {
			t.Errorf("%s: %d granted to a key in the table", name, n)
		}
		if n := take("3", 10*second+6); n != 10 {
			t.Errorf("%s: %d granted to a new key", name, n)
		}
		if s := limiter.Stats(); s.Keys != 3 || s.Forgotten != 1 {
			t.Errorf("%s: %+v, want 3 keys and 1 forgotten", name, s)
		}
		for i := range uint64(100) {
			take(strconv.FormatUint(100+i, 10), 20*second+i*3*second)
		}
		if s := limiter.Stats(); s.Keys > 3 || s.Forgotten != 1 || s.Bytes > 3*s.MostBytes {
			t.Errorf("%s: after idle keys %+v", name, s)
		}
	}
}

// The table evicts the key that was not used for the longest time.
func TestTableEvictsTheLeastRecentlyUsed(t *testing.T) {
	limiter, err := New("gcra", newLimit(t, 1, 1, 1e9), 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		key     string
		granted bool
	}{{"a", true}, {"b", true}, {"a", false}, {"c", true}, {"a", false}, {"b", true}} {
		if got := limiter.Take(step.key, second, unitsPerToken).Granted; got != step.granted {
			t.Errorf("step %d: granted %v", i, got)
		}
	}
}

// A state that is idle decides as the state of a new key.
func TestIdleStatesEqualNewOnes(t *testing.T) {
	t.Run("fixed window", idleEqualsNew[fixedWindow])
	t.Run("sliding log", idleEqualsNew[slidingLog])
	t.Run("sliding window", idleEqualsNew[slidingWindow])
	t.Run("leaky bucket", idleEqualsNew[leakyBucket])
	t.Run("gcra", idleEqualsNew[gcra])
}

func idleEqualsNew[S any, P state[S]](t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	idle := 0
	for range 100 {
		l := randomLimit(t, r)
		var used, fresh S
		isIdle := false
		for i, q := range traffic(l, r, 300) {
			if P(&used).idle(l, q.instant) && !isIdle {
				fresh, isIdle = *new(S), true
				idle++
			}
			got := P(&used).take(l, q.instant, q.units)
			if want := P(&fresh).take(l, q.instant, q.units); isIdle && got != want {
				t.Fatalf("%+v, request %d: %+v, a new state %+v", l, i, got, want)
			}
			isIdle = isIdle && got.Granted
		}
	}
	if idle < 100 {
		t.Errorf("%d states were idle", idle)
	}
}
