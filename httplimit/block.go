package httplimit

import (
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// A rule that blocks holds its bucket by the charge that is refused: see prepare. If its costs are
// in responses, a bucket may lack tokens only because of estimates, and then a refusal must not
// block. So each key has a second bucket in the same table, from which only costs that stand are
// taken, when the response has ended. A refusal asks it, and blocks both if it lacks the cost, too.
// If the second bucket is lost, it is full, and refusals do not block until costs stand again.

// standing is the last part of the key of a second bucket, which has one part more than other keys.
const standing = "standing"

func (r *rule) blocksLater() bool { return r.Block > 0 && r.price.inResponse }

func (r *rule) standingKey(key string) string {
	if r.table != nil {
		return string(compositekey.Append([]byte(key), standing))
	}
	return key + string(compositekey.Separator) + standing
}

func (c *call) standingCharge(e *entry, cost float64) (tb.StoreCharge, error) {
	return c.l.charge(e.limiters[e.tierIndex], e.standingKey(e.key), cost)
}

// lacksStanding reports whether e's rule blocks, and the costs that stand alone refuse the request.
// charge is on the second bucket.
func (c *call) lacksStanding(e *entry) (charge tb.StoreCharge, lacks bool, err error) {
	if !e.blocksLater() || e.decision.Allowed || e.decision.RetryAfter == tb.Never {
		return nil, false, nil
	}
	charge, err = c.standingCharge(e, e.cost)
	if err != nil {
		return nil, false, err
	}
	d, err := charge.Peek(c.now)
	if lacks = err == nil && !d.Allowed; lacks && e.table != nil {
		// A full table refuses a new key whatever it costs. A key that is there may owe a quantum.
		least, _ := c.standingCharge(e, 1e-6)
		least.MayWait(tb.Never)
		d, err = least.Peek(c.now)
		lacks = d.Allowed
	}
	return charge, lacks, err
}

// block holds both buckets of e, which has refused the request, if the costs that stand refuse it,
// too. A store that fails holds nothing, and the refusal stays.
func (c *call) block(e *entry) {
	second, lacks, err := c.lacksStanding(e)
	if lacks {
		err = c.hold(e, second)
	}
	if err != nil {
		c.count(e).errors.Add(1)
		c.runHook(c.l.hooks.Error, e, err)
	}
}

// hold holds e's bucket and the second one, unless tokens have come meanwhile.
func (c *call) hold(e *entry, second tb.StoreCharge) error {
	if _, err := c.prepare(e); err != nil {
		return err
	}
	for i, charge := range []tb.StoreCharge{e.charge, second} {
		charge.HoldOnRefusal(e.Block)
		switch d, err := charge.Take(c.now); {
		case err != nil:
			return err
		case !makesSense(d):
			return nonsense(c.l.store, "%+v", d)
		case d.Allowed:
			charge.Cancel()
			return nil
		case i == 0:
			e.decision = d
		}
	}
	return nil
}

// addStanding takes the cost of e, which stands, from its second bucket, also into debt, but not
// more than a full bucket has.
func (c *call) addStanding(e *entry) error {
	if !e.blocksLater() || e.cost == 0 {
		return nil
	}
	cost := min(e.cost, float64(e.limiters[e.tierIndex].Limit().Capacity))
	// Leases of Redis keep up to half of a bucket. A cost that never fits then is taken in halves.
	for _, part := range []float64{cost, cost / 2, cost / 2} {
		charge, err := c.standingCharge(e, part)
		if err != nil {
			return err
		}
		charge.MayWait(tb.Never)
		d, err := charge.Take(c.l.clock())
		if err != nil || part == cost && d.RetryAfter != tb.Never {
			return err
		}
	}
	return nil
}
