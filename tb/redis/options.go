package redis

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Option configures a limiter: see the functions that return one.
type Option struct {
	set   func(*settings)
	wrong error // a *tb.ConfigError if the value is out of range, otherwise nil
}

type settings struct {
	prefix  string
	timeout time.Duration
	policy  Policy
	lease   time.Duration // 0 for none
	alone   bool          // each call is a command of its own
	denial  time.Duration // the longest time for which a refusal is remembered
	*link

	logger *slog.Logger // may be nil
}

// WithPrefix sets the text before the keys in Redis. The default is "tb:". A prefix must not
// contain a brace. Limiters with the same prefix share their buckets, also if their limits differ:
// see Limiter.SetLimit.
func WithPrefix(prefix string) Option {
	if strings.ContainsAny(prefix, "{}") {
		return Option{wrong: &tb.ConfigError{
			Field: "WithPrefix", Value: prefix, Range: "a text without braces",
		}}
	}
	return Option{set: func(s *settings) { s.prefix = prefix }}
}

// WithTimeout sets the longest time that a call takes, at least 1 ms. The default is 50 ms, for a
// server up to 20 ms away: a call may take two round trips, one of which it waits for another call.
// A call that has to connect takes more. The deadline of a call's context ends the call too.
func WithTimeout(d time.Duration) Option {
	if d < time.Millisecond {
		return Option{wrong: &tb.ConfigError{Field: "WithTimeout", Value: d, Range: "at least 1ms"}}
	}
	return Option{set: func(s *settings) { s.timeout = d }}
}

// WithLease lets the limiter take tokens ahead, and grant calls from them for h by itself. It
// is for keys of up to 256 bytes with many calls in h, which is at least 1 ms.
//
// All limiters that share buckets must have the same h. The capacity of the buckets is less by what
// the rate supplies in h, rounded up to tokens, so that all processes together keep the bound of
// the limit (C1). If that is above half of the capacity, or if the rate supplies less than two
// tokens in h, the option does nothing.
//
// A lease grows while its tokens are used up within h, and takes at most half of what the bucket
// had. Its renewal, a later sweep or Close gives back what is left, as far as Cancel of a charge
// can. A process that is killed costs the tokens of its leases, and so does a reply that is lost or
// late. Levels and refusals count leased tokens as spent. After a Reset, leases of other limiters
// add to the bound. If calls on a key bring several limits in turn, the leases of one limit add to
// the bound of the others, at most what the greatest rate supplies in h. If a machine is suspended
// and its monotonic clock stands still, its leases end later.
func WithLease(h time.Duration) Option {
	if h < time.Millisecond {
		return Option{wrong: &tb.ConfigError{Field: "WithLease", Value: h, Range: "at least 1ms"}}
	}
	return Option{set: func(s *settings) { s.lease = h }}
}

// WithMaxDenial sets for how long after a reply the limiter refuses calls by itself, if the reply
// shows that the bucket cannot pay them yet. The default is 1 s. Zero turns this off. RetryAfter
// and Remaining are what the server would return if no other process, and no TakeAll of several
// buckets, had taken tokens since the reply.
//
// Within this time, the limiter does not see that a bucket has gained tokens other than by its
// rate: another limiter has reset it, has given tokens back by a Cancel, by a Settle or from a
// lease, or has another limit; the server has lost it; or the server's clock was set forward. It
// sees what it resets and gives back itself. It remembers the buckets of 65,536 keys, and forgets
// them all when a further one comes.
func WithMaxDenial(d time.Duration) Option {
	if d < 0 {
		return Option{wrong: &tb.ConfigError{Field: "WithMaxDenial", Value: d, Range: "0 or more"}}
	}
	return Option{set: func(s *settings) { s.denial = d }}
}

// WithPolicy sets what decides a call that the server does not decide: because it does not answer,
// or answers with an error, or because the limiter has stopped asking it. The default is Refuse. A
// call whose context was cancelled is refused, or returns the *Error under Fail.
func WithPolicy(p Policy) Option {
	if p > Fail {
		return Option{wrong: &tb.ConfigError{
			Field: "WithPolicy", Value: int(p), Range: "Refuse, Allow, Fail or a LocalShare",
		}}
	}
	return Option{set: func(s *settings) { s.policy = p }}
}

// WithLogger sets a logger that has two records of an outage: of its first call that the server
// does not decide, as a warning with the error, and of its end, with its length and the number of
// such calls. The outage has ended when the server decides a call, has decided all calls for a
// second, and no breaker is open. Calls that a server answers with an error, for example for want
// of memory, and calls that fail otherwise, have outages of their own. A call whose context was
// cancelled makes none. The limiters of a Store have theirs in common. By default there is no
// logger.
func WithLogger(l *slog.Logger) Option {
	return Option{set: func(s *settings) { s.logger = l }}
}

// WithoutBatching makes a round trip for each call, and in TakeAll for each key. By default, calls
// that meet share commands: see the package comment. A proxy that distributes the keys over
// several servers, and sends a script to the server of its first key, needs this. Without batching,
// a local refusal may not know the latest grants of this limiter, so its RetryAfter may be too
// short.
func WithoutBatching() Option {
	return Option{set: func(s *settings) { s.alone = true }}
}

func apply(opts []Option) (settings, error) {
	s := settings{
		prefix: "tb:", timeout: 50 * time.Millisecond, denial: time.Second, link: new(link),
	}
	for _, o := range opts {
		if o.wrong != nil {
			return settings{}, o.wrong
		}
		if o.set != nil { // not the zero Option
			o.set(&s)
		}
	}
	return s, nil
}

// name returns the name of a key in Redis. Two keys never have the same name. The key is the hash
// tag, so that its buckets under several prefixes are on one server of a cluster.
func (s *settings) name(key string) string { return s.prefix + "{" + shorten(key) + "}" }

// longest is the most bytes of a key that stands in a name as it is.
const longest = 256

// shorten returns the key, or the beginning and the SHA-256 of a longer one, which are longer than
// any key that stays as it is.
func shorten(key string) string {
	if len(key) <= longest {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:longest+1-2*len(sum)] + hex.EncodeToString(sum[:])
}
