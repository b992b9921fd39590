package interleaving

import "github.com/seed-181794aa/ratelimit/internal/interleave/overlay"

// Where the bugs are planted.
const (
	bucketGo  = "tb/cas/bucket.go"
	clockGo   = "tb/cas/clock.go"
	ledgerGo  = "tb/cas/ledger.go"
	limiterGo = "tb/cas/limiter.go"
	singleGo  = "tb/cas/single.go"
	wordGo    = "tb/cas/word.go"
	evictGo   = "lru/evict.go"
	mapGo     = "lru/map.go"
)

// mutant is the code with one text replaced.
func mutant(name, file, before, after string) overlay.Variant {
	return overlay.Variant{Name: name, Edits: []overlay.Edit{{File: file, Old: before, New: after}}}
}

// mutants are the code with a bug each, by the step that it is in.
var mutants = []overlay.Variant{
	// take
	mutant("a grant is stored", bucketGo,
		`next := m.pack(delta, deficit); b.word.CompareAndSwap(word, next) {`,
		`next := m.pack(delta, deficit); true { b.word.Store(next)`),
	mutant("a late reading takes the bucket back in time", wordGo,
		"delta = now\n\t}\n",
		"}\n\tdelta = now\n"),
	mutant("a refusal writes", bucketGo,
		"return m.refusal(b.base, t, delta, deficit, cost), word, decided",
		`b.word.CompareAndSwap(word, m.pack(delta, deficit-cost))
			return m.refusal(b.base, t, delta, deficit, cost), word, decided`),
	mutant("a hit takes a lock", limiterGo,
		"\tif ok {\n\t\tif d, _, state := b.take(&l.meter, t, cost)",
		`	l.table.Replace(key, nil, nil)
	if ok {
		if d, _, state := b.take(&l.meter, t, cost)`),
	mutant("the clock starts twice", clockGo,
		"c.first.CompareAndSwap(nil, &t)",
		"c.first.Store(&t)"),
	// peek
	mutant("a sealed bucket is looked at as if it were gone", bucketGo,
		"if word == evicted {\n\t\treturn tb.Decision{}, gone",
		"if isSealed(word) {\n\t\treturn tb.Decision{}, gone"),
	// seal
	mutant("the seal is stored", bucketGo,
		"b.word.CompareAndSwap(word, word|sealBit)",
		"b.word.Store(word | sealBit)"),
	mutant("moved without a seal", bucketGo,
		"b.word.CompareAndSwap(word, word|sealBit)\n\t\t\tcontinue",
		"return tb.Decision{}, word, moved"),
	// move and help
	mutant("moved first and taken from later", limiterGo,
		`if d, p, ok := l.move(key, b, t, cost); ok {
					return d, p, nil
				}`,
		"l.move(key, b, t, 0)"),
	mutant("any value is replaced", mapGo,
		"replaced = ok && v == old;",
		"replaced = ok;"),
	mutant("a key is brought back", mapGo,
		"replaced = ok && v == old;",
		"replaced = !ok || v == old;"),
	mutant("a lost move is taken for a grant", limiterGo,
		"return d, place{next, word}, l.table.Replace(key, b, next)",
		"l.table.Replace(key, b, next)\n\treturn d, place{next, word}, true"),
	mutant("waits for the mover", limiterGo,
		`if d, p, ok := l.move(key, b, t, cost); ok {
					return d, p, nil
				}`,
		""),
	mutant("what is gone has decided", limiterGo,
		"if state == decided {\n\t\t\t\treturn d, place",
		"if state != moved {\n\t\t\t\treturn d, place"),
	// insert
	mutant("no second look-up", mapGo,
		`if _, ok := m.entries.Load(key); ok {
		return 0, Found, false
	}`,
		""),
	mutant("inserted without the lock", mapGo,
		`s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := m.entries.Load(key); ok {
		return 0, Found, false`,
		"if _, ok := m.entries.Load(key); ok {\n\t\treturn 0, Found, false"),
	mutant("a place is not reserved in one step", mapGo,
		"if m.count.CompareAndSwap(n, n+1) {",
		"if m.count.Add(1); true {"),
	{Name: "no place is reserved", Edits: []overlay.Edit{
		{File: mapGo, Old: "if m.count.CompareAndSwap(n, n+1) {", New: "if true {"},
		{File: mapGo, Old: "s.next++", New: `s.next++
	if m.count.Load() < m.max {
		m.count.Add(1)
	}`},
	}},
	// evict
	mutant("retired without a comparison", ledgerGo,
		"if !b.word.CompareAndSwap(word, evicted) {\n\t\treturn false\n\t}",
		"b.word.Store(evicted)"),
	mutant("the stamp is not compared", evictGo,
		"stamp, state := m.values.Stamp(v)\n\t\t\tgone = stamp == e.stamp &&",
		"_, state := m.values.Stamp(v)\n\t\t\tgone ="),
	mutant("deleted and not retired", evictGo,
		`stamp, state := m.values.Stamp(v)
			gone = stamp == e.stamp && m.values.Retire(v, state, now)`,
		"stamp, _ := m.values.Stamp(v)\n\t\t\tgone = stamp == e.stamp"),
	mutant("retired, and deleted later", evictGo,
		`m.entries.Compute(e.key, func(v V, _ bool) (V, bool) {
			stamp, state := m.values.Stamp(v)
			gone = stamp == e.stamp && m.values.Retire(v, state, now)
			return v, gone
		})`,
		`if v, ok := m.entries.Load(e.key); ok {
			stamp, state := m.values.Stamp(v)
			gone = stamp == e.stamp && m.values.Retire(v, state, now)
		}
		m.entries.Compute(e.key, func(v V, _ bool) (V, bool) { return v, gone })`),
	mutant("a key that was used in between loses its place", evictGo,
		"s.order.push(e) // used in between: its stamp is stale now",
		""),
	mutant("the place of an idle key is lost", mapGo,
		"&fixes); ok {\n\t\t\tm.count.Add(-1)",
		"&fixes); ok {"),
	mutant("the place of another shard is lost", mapGo,
		"if ok {\n\t\tm.count.Add(-1)\n\t}\n\treturn ok",
		"return ok"),
	// latest
	mutant("latest is stored", ledgerGo,
		"l.latest.CompareAndSwap(latest, at) {",
		"true {\n\t\t\tl.latest.Store(max(at, latest))"),
	mutant("a full bucket leaves no time behind", ledgerGo,
		"l.leave(l.fullAt(b.base, word))",
		""),
	mutant("a new bucket may be older", ledgerGo,
		"max(t, l.latest.Load())",
		"t"),
	// reset
	mutant("reset does not retire", ledgerGo,
		"b.retire()",
		"b.word.Load()"),
	mutant("reset counts what it did not find", mapGo,
		"if found {\n\t\ts.order.remove(key)\n\t\tm.count.Add(-1)\n\t}",
		"s.order.remove(key)\n\tm.count.Add(-1)"),
	mutant("reset without the lock", mapGo,
		"s.mu.Lock()\n\tdefer s.mu.Unlock()\n\tfound := false",
		"found := false"),
	{Name: "the place is given back before the key is removed", Edits: []overlay.Edit{
		{File: mapGo, Old: "s.order.remove(key)\n\t\tm.count.Add(-1)", New: "s.order.remove(key)"},
		{File: mapGo, Old: "retire(v)\n", New: "m.count.Add(-1)\n\t\t\tretire(v)\n"},
	}},
	// RefuseNew
	mutant("Room does not look again", mapGo,
		"if _, ok := m.entries.Load(key); ok {\n\t\treturn 0, Found\n\t}",
		""),
	mutant("Peek takes a new key for none", limiterGo,
		"case outcome == lru.Found: // now it is\n\t\t\tcontinue\n", ""),
	mutant("Peek does not wait for an insert", mapGo,
		`s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := m.entries.Load(key); ok {
		return 0, Found
`,
		`s := m.shard(key)
	if m.keep {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	if _, ok := m.entries.Load(key); ok {
		return 0, Found
`),
	mutant("the least is not looked at again", evictGo,
		"for !sure && *fixes > 0 && !m.refresh(&best) {", "for false && !sure {"),
	mutant("Room does not correct the order", mapGo,
		"least := m.least(s, &fixes)",
		"least := s.order.pop()\n\t_ = fixes"),
	// Bucket
	mutant("the first state of a Bucket is stored", singleGo,
		"return b.state.CompareAndSwap(nil, new(bucket).set(blocks, b.meter.pack(rest, cost)))",
		`b.state.Store(new(bucket).set(blocks, b.meter.pack(rest, cost)))
	return true`),
	mutant("the first state of a Bucket is taken from later", singleGo,
		`if cost > b.meter.capacity || b.begin(t, cost) {
				return b.meter.stranger(cost)
			}`,
		"b.begin(t, 0)"),
	mutant("the successor of a Bucket is stored", singleGo,
		"if b.state.CompareAndSwap(old, new(bucket).set(base, word)) {",
		"if b.state.Store(new(bucket).set(base, word)); true {"),
}
