package httplimit

import (
	"cmp"
	"slices"
	"unsafe"
)

// find collects the rules that apply to the request.
func (c *call) find() {
	for _, s := range c.program.sets {
		if !s.picks(c.r) {
			continue
		}
		held := c.climb(s.ladders, false)
		heldInShadow := c.climb(s.shadows, true) || held
		if f := s.fallback; f != nil && (!held && !f.Shadow || !heldInShadow) &&
			c.holds(f.conditions) {
			c.add(f)
		}
	}
}

// climb adds the rules that apply of each ladder, or only the shadow rules of them, and
// says whether the match of any rule held.
func (c *call) climb(ladders []ladder, shadow bool) (held bool) {
	for _, ladder := range ladders {
		for _, g := range ladder {
			if !c.holds(g[0].conditions) {
				continue
			}
			held = true
			applies := false
			for _, r := range g {
				if !c.add(r) {
					continue
				}
				applies = true
				if shadow && !r.Shadow {
					c.drop()
				}
			}
			if applies {
				break
			}
		}
	}
	return held
}

func (c *call) holds(conditions []condition) bool {
	for i := range conditions {
		if conditions[i].value(c) != conditions[i].want {
			return false
		}
	}
	return true
}

// add adds the rule with its key in this request, unless it lacks one and skips.
func (c *call) add(r *rule) bool {
	n := len(c.entries)
	c.entries = slices.Grow(c.entries, 1)[:n+1]
	e := &c.entries[n] // filled in where it is: it is large
	e.rule, e.cost = r, r.price.of(c.r)
	if r.addresses != nil {
		e.network = c.network()
		return true
	}
	start := len(c.keys)
	for i := range r.sources {
		var ok bool
		if c.keys, ok = r.sources[i].appendPart(c.keys, c); !ok && r.OnMissing != Shared {
			if r.OnMissing == Skip {
				c.drop()
				return false
			}
			e.missing = cmp.Or(e.missing, r.sources[i].name) // the first
		}
	}
	// The key is a view of the buffer, which is only appended to until the call ends;
	// what has grown out of an old array leaves it as it was. Limiters of tb/cas copy
	// the keys that they keep, and end forgets the charges.
	if key := c.keys[start:]; len(key) > 0 {
		e.key = unsafe.String(&key[0], len(key))
	}
	return true
}

// drop drops the entry that was added last. Beyond the last all are zero.
func (c *call) drop() {
	last := len(c.entries) - 1
	c.entries[last] = entry{}
	c.entries = c.entries[:last]
}
