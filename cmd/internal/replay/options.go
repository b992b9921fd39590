package replay

import (
	"fmt"
	"net/netip"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Options are the limits of a replay and how they apply to a request.
type Options struct {
	// Rates and Bursts are the limits. Every rate is tried with every burst, all in one
	// pass, each pair with a limiter of its own.
	Rates  []Rate
	Bursts []Burst
	// Keys name the parts of a key: ip, user, path, host or fields of a JSON log.
	Keys []string
	// Trusted are the networks of proxies whose X-Forwarded-For is believed. IPv6Prefix is
	// how many bits of an IPv6 address make a client, 1 to 128.
	Trusted    []netip.Prefix
	IPv6Prefix int
	// Cost is the cost of a request.
	Cost Cost
	// Suggest asks for a suggestion at each of the Rates. There are no Bursts then.
	Suggest Share
	// ByPath asks for limits of the paths with the most requests, too. Export is what the suggestion
	// is printed as: policy, caddy or nginx, or empty for a policy of one rule.
	ByPath bool
	Export string
	// FirstLook makes the text begin with the first requests, for a log that the user does not know.
	FirstLook bool
	// Policy is replayed instead of limits, if it is not nil.
	Policy *httplimit.Policy
	// MaxKeys bounds the table of each limiter. Overflow applies to a new key while no
	// bucket in the table is full.
	MaxKeys  int
	Overflow tb.Overflow
	// Reference replays with tb/mutex, which the tests compare tb/cas with.
	Reference bool
	// Algorithms name the algorithms to compare under the only limit. It may be empty.
	Algorithms []string
	// AllowMalformed accepts a log of which most lines are malformed.
	AllowMalformed bool
	// Picture keeps what WriteHTML needs, for a single limit or a suggestion.
	Picture bool
	// Follow gets the report so far every two seconds, unless it is nil. An error ends the replay.
	// There is one input then, and no suggestion.
	Follow func(*Report) error
}

// validate returns an error if the sweep is too large or the key has a mistake.
func (o *Options) validate() error {
	if n := len(o.Rates) * len(o.Bursts); n > maxSweep {
		return fmt.Errorf("sweep: %d pairs of rate and burst, want at most %d", n, maxSweep)
	}
	if _, err := newContest(o); err != nil {
		return err
	}
	_, _, err := newKeyer(o)
	return err
}
