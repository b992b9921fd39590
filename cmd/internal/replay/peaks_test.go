package replay

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// The peaks equal a count over all grants, in slots. An instant that steps back counts as the
// latest one of its key.
func TestPeaks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		p := newPeaks(time.Duration(1 + r.Int64N(int64(time.Second)<<r.IntN(6))))
		now := r.Uint64N(1 << 40)
		type grant struct{ slot, units uint64 }
		all := map[string][]grant{}
		latest := map[string]uint64{}
		var window, tenth uint64
		for range 500 {
			now += r.Uint64N(p.slot * p.tenth)
			key, units := strconv.Itoa(r.IntN(3)), 1+r.Uint64N(5)
			instant := now - min(now, r.Uint64N(2*p.slot*p.window))*r.Uint64N(2)
			p.add(key, instant, units)
			latest[key] = max(latest[key], instant)
			now := latest[key]
			all[key] = append(all[key], grant{now / p.slot, units})
			var inWindow, inTenth uint64
			for _, g := range all[key] {
				if g.slot+p.window > now/p.slot {
					inWindow += g.units
				}
				if g.slot+p.tenth > now/p.slot {
					inTenth += g.units
				}
			}
			window, tenth = max(window, inWindow), max(tenth, inTenth)
			if w, d := p.most(); w != window || d != tenth {
				t.Fatalf("%+v: %d and %d, want %d and %d", p, w, d, window, tenth)
			}
		}
	}
}

// An interval of slots is never longer than the window, and at least 159 of 160 parts of it.
func TestSlotsOfAWindow(t *testing.T) {
	for _, window := range []time.Duration{1, 9, 159, 160, 161, 999, time.Second, 7 * time.Hour} {
		p := newPeaks(window)
		length := p.slot * p.window
		if length > uint64(window) || length*161 < uint64(window)*160 || p.tenth > max(1, p.window/10) {
			t.Errorf("%v: %d slots of %d ns, a tenth %d", window, p.window, p.slot, p.tenth)
		}
	}
}

// Beyond the bound, the keys with the most grants are tracked, and no key counts the grants of the
// key that it replaces.
func TestPeaksOfManyKeys(t *testing.T) {
	p := newPeaks(time.Second)
	for i := range uint64(3 * maxTracked) {
		p.add(strconv.FormatUint(i, 10), 0, 1)
	}
	if window, tenth := p.most(); window != 1 || tenth != 1 {
		t.Errorf("%d and %d, want 1", window, tenth)
	}
	for i := range uint64(3 * maxTracked) {
		if i%(maxTracked+100) < 10 {
			p.add("k", 0, 1)
		}
		p.add(strconv.FormatUint(i, 10), 0, 1)
	}
	if window, tenth := p.most(); window != 30 || tenth != 30 {
		t.Errorf("%d and %d, want 30", window, tenth)
	}
}

// The memory is bounded: as many keys as have statistics, with a slot each at most.
func TestPeaksAreBounded(t *testing.T) {
	p := newPeaks(time.Second)
	for i := range uint64(3 * maxTracked) {
		p.add(strconv.FormatUint(i, 10), i, 1)
		if i == maxTracked-2 && p.partial() {
			t.Error("partial although all keys are tracked")
		}
	}
	for i := range uint64(1_000_000) {
		p.add("k", i*1000-i%2*min(i*1000, 1e8), 1) // every other one is late
	}
	if p.keys.Len() != maxTracked || !p.partial() {
		t.Errorf("%d keys", p.keys.Len())
	}
	k, added := p.keys.See([]byte("k"))
	if n := len(k.Value.window.slots); added || n > slotsInWindow {
		t.Errorf("%d slots, new %v", n, added)
	}
}
