package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// look returns the bucket's cell and layout, and its balance in that layout. If there is no bucket,
// the cell is nil, and refused is how long a full table would refuse a new one, or 0.
func look[H home](
	h H, t uint64,
) (c *cell, m *layout, has balance, refused time.Duration, err error) {
	for {
		before := h.load()
		_, found := visit(h, before, t, func(l *layout, own *cell, b balance) (balance, bool) {
			c, m, has = own, l, b
			return b, false
		})
		if found {
			return c, m, has, 0, nil
		}
		m = h.layoutOf(nil)
		refused, err = h.refuses(m, t)
		if refused == 0 || h.load() == before { // or else the bucket itself may have filled the table
			return nil, m, has, refused, err
		}
	}
}

// peek returns what a call would decide, and the bucket's cell if there is a bucket.
func peek[H home](h H, t uint64, want request) (tb.Decision, *cell, error) {
	c, m, has, refused, err := look(h, t)
	if err != nil {
		return tb.Decision{}, nil, err
	}
	switch units := want.cost(m); {
	case c != nil:
		_, o := m.decide(has, t, &want)
		return o.Decision, c, nil
	case refused > 0 && units <= m.capacity:
		return tb.Decision{RetryAfter: refused}, nil, nil
	default:
		return m.fullDecision(units), nil, nil
	}
}

// level returns how full the bucket is at t.
func level[H home](h H, t uint64) (tb.Level, error) {
	if c := h.load(); c != nil {
		m := h.layoutOf(c)
		if word := c.word.Load(); !isSealed(word) && m.owns(c) {
			return m.level(m.balanceOf(c.base, word), t), nil
		}
	}
	c, m, has, refused, err := look(h, t)
	switch {
	case err != nil:
		return tb.Level{}, err
	case c != nil:
		return m.level(has, t), nil
	case refused > 0:
		return tb.Level{NextToken: refused, Full: refused}, nil
	}
	return tb.Level{Tokens: float64(m.tokens)}, nil
}
