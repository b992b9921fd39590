package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

// Files in which bugs are planted.
const (
	bucketGo   = "tb/cas/bucket.go"
	cellGo     = "tb/cas/cell.go"
	clockGo    = "tb/cas/clock.go"
	evictionGo = "tb/cas/eviction.go"
	limiterGo  = "tb/cas/limiter.go"
	placeGo    = "tb/cas/place.go"
	spendGo    = "tb/cas/spend.go"
	evictGo    = "lru/evict.go"
	mapGo      = "lru/map.go"
	moveGo     = "lru/move.go"
)

// mutant returns the code with one text replaced.
func mutant(name, file, before, after string) overlay.Variant {
	return overlay.Variant{Name: name, Edits: []overlay.Edit{edit(file, before, after)}}
}

// moved returns the code with tiny maps and one text replaced.
func moved(name, file, before, after string) overlay.Variant {
	m := mutant(name, file, before, after)
	m.Edits = append(m.Edits, growing.Edits...)
	return m
}

// essential are the names of the bugs that the tests plant without the flag -all.
var essential = []string{
	"a grant is stored",
	"the seal is stored",
	"a move does not charge the call",
	"an insert does not look its key up again",
	"a bucket is retired in any state",
	"a look-up misses a key that was moved",
	"Cancel of a charge stores the word",
	"TakeAll keeps the charges before a refusal",
	"a reservation is cancelled twice",
	"a layout is there before its supply",
	"a look does not load a cell of another tier again",
}

// mutants are variants of the code with one bug each, sorted by the step with the bug.
var mutants = []overlay.Variant{
	// take
	mutant("a grant is stored", cellGo,
		"if next := m.pack(delta, deficit); c.word.CompareAndSwap(word, next) {",
		"if next := m.pack(delta, deficit); true {\n\t\t\tc.word.Store(next)"),
	mutant("a late reading takes the bucket back in time", cellGo,
		"delta = elapsed\n\t}\n",
		"}\n\tdelta = elapsed\n"),
	mutant("a refusal writes", cellGo,
		"return d, word, word, true",
		`c.word.CompareAndSwap(word, m.pack(delta, deficit-cost))
			return d, word, word, true`),
	mutant("a hit takes a lock", limiterGo,
		"if c != nil && m != nil {\n\t\tif d, _, _, ok := c.take(m, at, m.unitsOf(n))",
		`if c != nil && m != nil {
		l.table.Replace(key, nil, func(*cell) {})
		if d, _, _, ok := c.take(m, at, m.unitsOf(n))`),
	mutant("a hit takes the lock of inserts", limiterGo,
		"if c != nil && m != nil {\n\t\tif d, _, _, ok := c.take(m, at, m.unitsOf(n))",
		`if c != nil && m != nil {
		l.table.Len()
		if d, _, _, ok := c.take(m, at, m.unitsOf(n))`),
	mutant("the clock starts twice", clockGo,
		"c.first.CompareAndSwap(nil, &t)",
		"c.first.Store(&t)"),
	// peek
	mutant("Peek treats a sealed bucket as evicted", placeGo,
		"own := c.word.Load(); own != evicted", "own := c.word.Load(); !isSealed(own)"),
	// seal
	mutant("the seal is stored", spendGo,
		"c.word.CompareAndSwap(word, word|sealBit)",
		"c.word.Store(word | sealBit)"),
	mutant("a bucket moves without a seal", spendGo,
		"case isSealed(word):",
		"case isSealed(word) || !m.owns(c) || !m.holds(c.base, next):"),
	// move and help
	mutant("a move does not charge the call", spendGo,
		"base, r = m.successor(before, next, t)",
		"base, r = m.successor(before, before, t)"),
	mutant("any value is replaced", tableGo,
		"replaced = ok && v == old;",
		"replaced = ok;"),
	mutant("a key is brought back", tableGo,
		"replaced = ok && v == old;",
		"replaced = !ok || v == old;"),
	mutant("a lost move counts as a grant", spendGo,
		"return r, r.cell != nil",
		"return r, true"),
	mutant("a call waits for the mover of its bucket", spendGo,
		"r.cell = h.replace(c, m, base, r.after)\n",
		"_ = base\n"),
	mutant("an evicted bucket decides the call", cellGo,
		"if isSealed(word) || cost > m.capacity {",
		"if cost > m.capacity {"),
	// Insert
	moved("an insert does not look its key up again", mapGo,
		"if found != nil {\n\t\treturn nil, 0, Found\n\t}",
		"_ = found"),
	moved("an insert does not take the lock", mapGo,
		"m.mu.Lock()\n\tdefer m.mu.Unlock()\n\tfound, stored",
		"found, stored"),
	mutant("a key is evicted only when the table has too many", mapGo,
		"if m.table.keys == m.max {",
		"if m.table.keys > m.max {"),
	mutant("an impossible cost adds the key", placeGo,
		"if cost > m.capacity && !want.rest {",
		"if cost == 0 {"),
	// evict
	mutant("a bucket is retired without a comparison", evictionGo,
		"if !c.word.CompareAndSwap(word, evicted) {\n\t\treturn false\n\t}",
		"c.word.Store(evicted)"),
	mutant("a bucket is retired in any state", evictGo,
		"m.values.Retire(v, c.stamp, c.state, now)",
		"func() bool { _, s, _ := m.values.Stamp(v); return m.values.Retire(v, c.stamp, s, now) }()"),
	mutant("a key is removed and its bucket is not retired", evictGo,
		"v == c.value && m.values.Retire(v, c.stamp, c.state, now)",
		"v == c.value"),
	mutant("a bucket is retired before its key is removed", evictGo,
		`return m.table.remove(m.table.keyOf(c.value), func(v *V) bool {
		return v == c.value && m.values.Retire(v, c.stamp, c.state, now)
	}) != nil`,
		`return m.values.Retire(c.value, c.stamp, c.state, now) &&
		m.table.remove(m.table.keyOf(c.value), func(*V) bool { return true }) != nil`),
	mutant("a key that was used in between loses its slot", evictGo,
		"m.order.put(c.entry) // used since: its stamp is stale",
		""),
	mutant("the order does not follow a successor", evictGo,
		"c.value = m.table.load(m.table.keyOf(c.value))\n",
		"\n"),
	mutant("the first candidate is evicted", evictGo,
		"if c.before(&best.entry) {",
		"if false {"),
	mutant("a stale stamp counts as the least", evictGo,
		"m.order.first().before(&best.entry) &&",
		"false &&"),
	mutant("the least stamp is not read again", evictGo,
		"before := c.stamp\n\t\tm.refresh(&c)",
		"before := c.stamp"),
	mutant("a debt is forgiven after two looks", mapGo,
		"b := budget{toImprove: maxLooksToImprove, toFind: maxLooksToFind}\n\tif least",
		"b := budget{toImprove: maxLooksToImprove, toFind: 1}\n\tif least"),
	mutant("a key that is no longer idle is dropped", mapGo,
		"m.evict(idle, now, &b)",
		"m.evict(math.MaxUint64, now, &b)"),
	// latest
	mutant("a full bucket leaves no time behind", evictionGo,
		"e.earliest = max(",
		"_ = max("),
	mutant("a new bucket may be older", placeGo,
		"max(t, p.evictor.earliest)",
		"t"),
	// Remove
	mutant("a reset does not take the lock", mapGo,
		"m.mu.Lock()\n\tdefer m.mu.Unlock()\n\tif m.refuseNew",
		"if m.refuseNew"),
	mutant("a reset leaves the slot of its key", mapGo,
		"if !m.order.remove(func(u *V) bool { return u == v }) {",
		"if false {"),
	mutant("a reset leaves the slot of a predecessor", mapGo,
		"m.order.remove(func(u *V) bool { return m.table.hasKey(u, key) })",
		""),
	mutant("a reset announces too late that there is room", mapGo,
		"m.refuseUntil.Store(0) // before", "// before"),
	mutant("Peek refuses a key of a full table", placeGo,
		"p.load() == c {", "true {"),
	// Refuses
	mutant("an insert does not announce that the table is full", mapGo,
		"m.order.add(stamp, v)\n\tm.publish()",
		"m.order.add(stamp, v)"),
	mutant("a table with one slot left is full", mapGo,
		"case m.table.keys < m.max:",
		"case m.table.keys+1 < m.max:"),
	mutant("Refuses does not count again", mapGo,
		"if m.table.keys < m.max { // since the load",
		"if false {"),
	mutant("Refuses waits for an insert", mapGo,
		"m.mu.TryLock() {",
		"func() bool { m.mu.Lock(); return true }() {"),
	mutant("Refuses loses a slot", mapGo,
		"c := m.popLeast(now, &b)\n\t\tm.order.put(c.entry)",
		"c := m.popLeast(now, &b)"),
	// look-ups
	moved("a look-up misses a key that was moved", tableGo,
		"move != nil && move.from == m",
		"move != nil && false"),
	moved("a look-up does not read the slot again", tableGo,
		"if now == m {",
		"if true {"),
	moved("a look-up reads the new map first", tableGo,
		"if v, ok := m.Load(hash); ok {\n\t\t\treturn m, v",
		`if move := t.moving.Load(); move != nil && move.from == m {
			if v, ok := move.target(slot).Load(hash); ok {
				return move.target(slot), v
			}
		}
		if v, ok := m.Load(hash); ok {
			return m, v`),
	moved("a key moves to the wrong half", moveGo,
		"func (m *move[V]) target(slot int) *smallMap[V] {\n\tif slot < m.middle {",
		"func (m *move[V]) target(slot int) *smallMap[V] {\n\tif slot <= m.middle {"),
	// move
	moved("a move of keys is not announced", moveGo,
		"t.moving.Store(m)",
		""),
	moved("a key is removed before it is stored in the new map", moveGo,
		`to.Store(hash, v)
			m.from.Compute(hash, func(now *V, _ bool) (*V, bool) {
				moved = now == v // if not, it was replaced meanwhile
				v = now
				return now, moved
			})`,
		`m.from.Compute(hash, func(now *V, _ bool) (*V, bool) {
				moved, v = true, now
				return now, true
			})
			to.Store(hash, v)`),
	moved("a value that is replaced during a move is lost", moveGo,
		"moved = now == v // if not, it was replaced meanwhile",
		"moved = true"),
	moved("a move stores the replaced value again", moveGo,
		"v = now\n",
		"\n"),
	moved("the keys of a half are not counted", moveGo,
		"low++",
		""),
	moved("the slots have the new maps too early", moveGo,
		"t.moveKeys(m)\n\tt.finish(m, ",
		"t.assign(to, s)\n\tt.moveKeys(m)\n\tt.finish(m, "),
	moved("the move is over too early", moveGo,
		`for _, s := range spans {
		t.assign(m.target(s.from), s)
	}
	t.moving.Store(nil)`,
		`t.moving.Store(nil)
	for _, s := range spans {
		t.assign(m.target(s.from), s)
	}`),
	moved("the move is never over", moveGo,
		"t.moving.Store(nil)",
		""),
	moved("one of two maps stays in the field only", tableGo,
		"m = nil\n\t}",
		"return\n\t}"),
	// replace
	moved("a value is replaced only in the map of its slot", tableGo,
		"m, v := t.find(stored)\n\t\tif v == nil {",
		`m := t.slots[t.slot(stored)].Load()
		v, _ := m.Load(stored)
		if v == nil {`),
	// store and remove
	moved("a key is not counted", tableGo,
		"t.spans[slot].keys++",
		""),
	moved("a key is stored in the map that was divided", tableGo,
		`for t.spans[slot].crowded() {
		t.grow(t.spans[slot])
	}
	t.slots[slot].Load().Store(stored, v)`,
		`m := t.slots[slot].Load()
	for t.spans[slot].crowded() {
		t.grow(t.spans[slot])
	}
	m.Store(stored, v)`),
	mutant("a key that left is counted", tableGo,
		"t.keys--",
		""),
	moved("a key that left its map is counted", tableGo,
		"if s.keys--; s.sparse() {",
		"if s.sparse() {"),
	// keys with the same hash
	mutant("a key is stored over a key with the same hash", tableGo,
		"t.slots[slot].Load().Store(stored, v)",
		"t.slots[slot].Load().Store(t.hasher.hash(t.keyOf(v)), v)"),
	mutant("a collision is not remembered", tableGo,
		"\t\tt.recordCollision(hash)\n",
		""),
	mutant("a look-up stops at a free hash", tableGo,
		"if v == nil && !t.hasCollided(hash) {",
		"if v == nil {"),
	mutant("a look-up finds another key with the same hash", tableGo,
		"ok && t.hasKey(v, key)",
		"ok"),
	mutant("a probe finds another key with the same hash", tableGo,
		"case v != nil && t.hasKey(v, key):",
		"case v != nil:"),
	mutant("a key behind another is not removed", tableGo,
		"\tif t.collided.Load() != nil {\n\t\t_, stored = t.probe(stored, key)\n\t}\n",
		""),
	// Bucket
	mutant("the first cell of a Bucket is stored", bucketGo,
		"if !b.cell.CompareAndSwap(nil, c) {",
		"if b.cell.Store(c); false {"),
	mutant("the first cell of a Bucket does not charge the call", bucketGo,
		"c := new(cell).init(m, base, word)",
		"c := new(cell).init(m, base, word-s.charged)"),
	mutant("the successor of a Bucket is stored", bucketGo,
		"if !b.cell.CompareAndSwap(old, next) {",
		"if b.cell.Store(next); false {"),
}
