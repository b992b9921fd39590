package interleaving

import (
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/overlay"
	"github.com/seed-181794aa/ratelimit/proof/planted"
)

// tableGo is the file with the sizes of the small maps.
const tableGo = "lru/table.go"

// The explored variants without a bug. The small maps of the code that ships have room for all keys
// of a scenario, so no scenario replaces one. In the other variants the small maps are tiny.
var (
	shipped = overlay.Variant{Name: "shipped"}

	// A map takes one key, then it is replaced by a map of two keys, and then it is divided.
	growing = tiny("growing", "2", "2")

	// A map takes one key, and then it is divided. The keys of a map are in two buckets.
	dividing = overlay.Variant{Name: "dividing", Edits: append(tiny("", "1", "1").Edits,
		edit(tableGo, "xsync.WithPresize(buckets*15/4)", "xsync.WithPresize(8*buckets)"),
	)}

	// All keys share the one pair of the front, and each grant takes it.
	onePair = overlay.Variant{Name: "one pair", Edits: []overlay.Edit{
		edit("lru/front.go", "leastPairs = 8", "leastPairs = 1"),
		edit("lru/front.go", "mostPairs  = 2048", "mostPairs  = 1"),
		edit("tb/cas/limiter.go", ">>60 == 0", ">>60 < 16"),
	}}
)

// tiny returns the code with small maps of one key per map bucket.
func tiny(name, mostBuckets, keysPerSlot string) overlay.Variant {
	return overlay.Variant{Name: name, Edits: []overlay.Edit{
		edit(tableGo, "leastBuckets = 32", "leastBuckets = 1"),
		edit(tableGo, "mostBuckets = 2048", "mostBuckets = "+mostBuckets),
		edit(tableGo, "keysPerSlot = 9 * mostBuckets / 4", "keysPerSlot = "+keysPerSlot),
		edit(tableGo, "rebuildTurns = 8", "rebuildTurns = 1"),
		edit(tableGo, "return buckets * 17 / 5", "return buckets"),
		edit(tableGo, "3*buckets < keys", "buckets < keys"),
		edit(tableGo, "s.keys < s.buckets/4", "s.keys < s.buckets"),
	}}
}

func edit(file, before, after string) overlay.Edit {
	return overlay.Edit{File: file, Old: before, New: after}
}

// variantOf returns the code with a bug.
func variantOf(b planted.Bug) overlay.Variant {
	v := overlay.Variant{Name: b.Name, Edits: []overlay.Edit{edit(b.File, b.Old, b.New)}}
	if b.TinyMaps {
		v.Edits = append(v.Edits, growing.Edits...)
	}
	if b.OnePair {
		v.Edits = append(v.Edits, onePair.Edits...)
	}
	return v
}
