package policy

import (
	"math"
	"slices"
	"time"
)

// OnLimit says what a rule does with a request for which its bucket has too few tokens.
type OnLimit int

const (
	// Refuse is the default: the rule refuses the request, with 429.
	Refuse OnLimit = iota
	// Delay lets the request take its tokens in advance and wait until they may be used, in the order
	// in which requests took them. The rule refuses a request that would wait for longer than
	// MaxDelay, or for which the bucket cannot lend. It lends at least 2,147 tokens and two bursts.
	Delay
)

const mostWaiting = 1 << 20

// leastBlock and mostBlock are the range of Rule.Block. Retry-After counts seconds, and a year is
// as good as for ever.
const leastBlock, mostBlock = time.Millisecond, 8760 * time.Hour

// unreadDelay is the MaxDelay or Block of a rule whose own could not be read, which is an error
// already.
const unreadDelay time.Duration = math.MinInt64

func (r *Rule) checkDelay(path Path, errs *Problems) {
	if r.OnLimit < Refuse || r.OnLimit > Delay {
		errs.Add(path.Field("on_limit"), "is %d, want Refuse or Delay", r.OnLimit)
	}
	switch {
	case r.MaxDelay == 0 && r.OnLimit == Delay:
		errs.Add(path.Field("max_delay"), "is missing, because on_limit is delay")
	case r.MaxDelay < 0 && r.MaxDelay != unreadDelay:
		errs.Add(path.Field("max_delay"), "must be > 0 (got %v)", r.MaxDelay)
	}
	path = path.Field("block")
	switch {
	case r.Block == 0 || r.Block == unreadDelay:
	case r.Block < leastBlock || r.Block > mostBlock:
		errs.Add(path, "must be 1ms to 8760h (got %v)", r.Block)
	case r.OnLimit == Delay:
		errs.Add(path, "must not be in a rule with on_limit delay, which lets clients come too fast")
	case r.Adaptive != (Adaptive{}):
		errs.Add(path, "must not be in a rule with adaptive, because a slow downstream would block "+
			"clients")
	}
}

func (w *warner) blocks(s *RuleSet, r *Rule, path Path) {
	switch {
	case r.Block == 0 || !s.enforces(r):
	case len(r.Keys) == 0:
		w.Add(path, "is for all requests together, because limit_keys is []: one client that sends too "+
			"many blocks all others")
	case !slices.ContainsFunc(r.Keys, func(k string) bool { return !w.isInvented(k) }):
		w.Add(path, "is for a key that the client chooses: a client that sends the value of another "+
			"one blocks that one")
	}
}
