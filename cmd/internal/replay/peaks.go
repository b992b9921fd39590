package replay

import (
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
)

// slotsInWindow is how many slots a window has. Grants of the same slot are added up, so that a key
// needs at most 5 KiB, whatever its limit is. All 4,096 keys need 20 MB if they send all the time.
const slotsInWindow = 160

// peaks finds the most units that one key was granted in any interval, for intervals of a window
// and of a tenth of it. An interval begins and ends with a slot, so the result may be too low by
// the grants of a slot. If all times are whole numbers of slots, it is exact.
type peaks struct {
	slot          uint64 // in nanoseconds
	window, tenth uint64 // in slots
	keys          *sketch.Summary[keyPeaks]
	mostWindow    uint64
	mostTenth     uint64
}

// keyPeaks has the recent grants of a key.
type keyPeaks struct{ window, tenth recent }

func newPeaks(window time.Duration) peaks {
	slot := max(1, uint64(window)/slotsInWindow)
	slots := uint64(window) / slot
	return peaks{
		slot: slot, window: slots, tenth: max(1, slots/10),
		keys: sketch.NewSummary[keyPeaks](maxTracked),
	}
}

// add counts a grant. An instant before the latest one of the key counts as the latest.
func (p *peaks) add(key string, instant, units uint64) {
	entry, added := p.keys.See([]byte(key))
	if added {
		entry.Value = keyPeaks{}
	}
	entry.Count += float64(units)
	slot := instant / p.slot
	p.mostWindow = max(p.mostWindow, entry.Value.window.add(slot, units, p.window))
	p.mostTenth = max(p.mostTenth, entry.Value.tenth.add(slot, units, p.tenth))
}

// most returns the most units in a window and in a tenth of it.
func (p *peaks) most() (window, tenth uint64) { return p.mostWindow, p.mostTenth }

// partial reports whether there may be more keys than are tracked. The keys with the most grants
// are tracked.
func (p *peaks) partial() bool { return p.keys.Len() == maxTracked }

// recent has the grants of an interval that ends with the latest one.
type recent struct {
	slots []slotGrants // in the order of time
	sum   uint64
}

type slotGrants struct{ slot, units uint64 }

// add counts a grant, and returns the units in the given number of slots up to it.
func (r *recent) add(slot, units, slots uint64) uint64 {
	if last := len(r.slots) - 1; last >= 0 {
		slot = max(slot, r.slots[last].slot)
	}
	for len(r.slots) > 0 && r.slots[0].slot+slots <= slot {
		r.sum -= r.slots[0].units
		r.slots = r.slots[1:]
	}
	r.sum += units
	if last := len(r.slots) - 1; last >= 0 && r.slots[last].slot == slot {
		r.slots[last].units += units
	} else {
		r.slots = append(r.slots, slotGrants{slot, units})
	}
	return r.sum
}
