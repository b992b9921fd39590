package outbound

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

const mostKeys = 10_000 // that a rule remembers if no attempt has them

type rule struct {
	Rule
	learns  bool // it has no limit
	store   httplimit.Store
	limiter limiter

	mu    sync.Mutex
	keys  map[string]*key
	stats RuleStats
}

type limiter interface {
	tb.StoreLimiter
	Hold(ctx context.Context, key string, until time.Time) error
}

// inPlace is a limiter whose charges may be in a place of the caller, and allocate nothing then.
type inPlace interface {
	ChargeInPlace(c *cas.Charge[string], key string, cost float64) error
}

// key is what the process knows of a key of a rule. The bucket is in the store.
type key struct {
	rule    *rule
	text    string
	limiter limiter                   // of the rule, or of this key if the rule learns
	users   atomic.Int32              // attempts that have it; it grows under rule.mu
	paused  atomic.Pointer[time.Time] // the end of its last pause, or the zero time

	takes sync.RWMutex // read while an attempt takes its charges, locked by a move
	line  []*attempt   // that waits, in the order in which it came, under Transport.lines

	left float64   // of the limit after what has gone, under rule.mu
	at   time.Time // when

	// Of a rule that learns:
	turn     chan struct{} // is full while an attempt has its turn
	isSingle atomic.Bool   // an attempt needs its turn
	heard    time.Time     // when the server has said the limit, under takes
}

// start makes a rule ready for use, and takes the margin off its limit.
func (t *Transport) start(r *rule) (err error) {
	r.store, r.keys, r.stats.Name = t.store, make(map[string]*key), r.Name
	if r.Key == nil {
		r.Key = Host
	}
	limit, off := r.Limit, math.Ceil(tokensIn(r.Limit, t.margin))
	if limit == (tb.Limit{}) {
		limit, r.learns, t.learns = unlimited, true, true
	} else if err = limit.Validate(); err != nil {
		return err
	} else if limit.Capacity -= int(min(off, tb.MaxCapacity)); t.margin < 0 || limit.Capacity < 1 {
		return &tb.ConfigError{Field: "Margin", Value: t.margin,
			Range: fmt.Sprintf("what leaves a token of the %d of %q", r.Limit.Capacity, r.Name)}
	}
	t.units[r.Unit] = true
	r.limiter, err = r.newLimiter(limit)
	return err
}

func (r *rule) newLimiter(limit tb.Limit) (limiter, error) {
	all, err := r.store.Limiters(r.Name, []tb.Limit{limit})
	if err != nil {
		return nil, err
	}
	l, ok := all[0].(limiter)
	if !ok {
		err = fmt.Errorf("outbound: the store %T returns no limiter with the method Hold", r.store)
	}
	return l, err
}

// get returns a key for an attempt, which subtracts itself from the users at its end.
func (r *rule) get(text string) *key {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[text]
	if k == nil {
		for n := 0; n < 2 && len(r.keys) >= mostKeys; n++ { // two, because attempts may have had more
			r.forget()
		}
		k = &key{rule: r, text: text, limiter: r.limiter}
		k.paused.Store(new(time.Time))
		if r.learns {
			k.turn = make(chan struct{}, 1)
			if l, err := r.newLimiter(unlimited); err == nil {
				k.limiter = l
			}
		}
		r.keys[text] = k
	}
	k.users.Add(1)
	return k
}

// spend counts tokens of attempts that go, and returns what is left then. The bucket is ahead of
// that, because attempts that wait have taken from it.
func (k *key) spend(tokens float64, now time.Time) float64 {
	limit := k.limiter.Limit()
	k.rule.mu.Lock()
	defer k.rule.mu.Unlock()
	k.left = min(k.left+tokensIn(limit, now.Sub(k.at)), float64(limit.Capacity)) - tokens
	k.at = now
	return k.left
}

// forget forgets the key of a few whose pause ends first, if there is one that no attempt has.
func (r *rule) forget() {
	var first *key
	n := 0
	for _, k := range r.keys {
		isFirst := first == nil || k.paused.Load().Before(*first.paused.Load())
		if isFirst && k.users.Load() == 0 {
			first = k
		}
		if n++; n >= 16 {
			break
		}
	}
	if first != nil {
		delete(r.keys, first.text)
	}
}
