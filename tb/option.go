package tb

import (
	"fmt"
	"time"
)

// DefaultMaxKeys is the bound of a limiter's table if WithMaxKeys is not given.
const DefaultMaxKeys = 1 << 20

// maxMaxKeys is the largest bound that WithMaxKeys accepts.
const maxMaxKeys = 1 << 30

// Overflow decides what happens to a new key when no bucket in a full table is full.
type Overflow int

const (
	// ForgiveLeast evicts the bucket that is nearest to full and forgives its debt. No new key is
	// refused for lack of room. Stats counts the tokens forgiven.
	ForgiveLeast Overflow = iota
	// RefuseNew refuses the new key until a bucket is full. RetryAfter is the time until then.
	// No debt is ever forgiven.
	RefuseNew
)

// String returns the name of the constant.
func (o Overflow) String() string {
	switch o {
	case ForgiveLeast:
		return "ForgiveLeast"
	case RefuseNew:
		return "RefuseNew"
	}
	return fmt.Sprintf("Overflow(%d)", int(o))
}

// Option configures a limiter: see WithClock, WithMaxKeys and WithOverflow.
type Option struct{ set func(*Settings) error }

// WithClock sets the clock. Allow, AllowN, Peek and Level read it exactly once in each
// call with a valid cost. now must be safe for concurrent use. The default is the monotonic clock
// of the process. Some systems, Linux among them, stop it while the machine is suspended, so
// buckets are not refilled in that time. The clock time.Now().Round(0) goes on, but may be set.
//
// A testing/synctest bubble has a clock of its own, which begins in the year 2000. To a limiter
// with the default clock that was made outside, readings in the bubble are decades late: a bucket
// that was used outside, or any after a SetLimit, is not refilled there. Make it in the bubble.
func WithClock(now func() time.Time) Option {
	return Option{func(s *Settings) error {
		if now == nil {
			return &ConfigError{"WithClock", "nil", "a function"}
		}
		s.Now = now
		return nil
	}}
}

// WithMaxKeys sets the most keys that the limiter holds at any instant, 1 to 1<<30. The default
// is DefaultMaxKeys. There is always a bound.
func WithMaxKeys(n int) Option {
	return Option{func(s *Settings) error {
		if n < 1 || n > maxMaxKeys {
			return &ConfigError{"WithMaxKeys", n, fmt.Sprintf("1 to %d", maxMaxKeys)}
		}
		s.MaxKeys = n
		return nil
	}}
}

// WithOverflow sets what happens to a new key when no bucket in a full table is full. The default
// is ForgiveLeast.
func WithOverflow(p Overflow) Option {
	return Option{func(s *Settings) error {
		if p != ForgiveLeast && p != RefuseNew {
			return &ConfigError{"WithOverflow", p, "ForgiveLeast or RefuseNew"}
		}
		s.Overflow = p
		return nil
	}}
}

// Settings is the result of a list of options. Implementations of a limiter read it; callers pass
// the options.
type Settings struct {
	Now      func() time.Time // nil for the monotonic clock
	MaxKeys  int
	Overflow Overflow
}

// Apply returns the settings that opts describe, or the *ConfigError of the first option that is
// out of range. A later option overrides an earlier one.
func Apply(opts ...Option) (Settings, error) {
	s := Settings{MaxKeys: DefaultMaxKeys}
	for _, o := range opts {
		if o.set == nil { // the zero Option
			continue
		}
		if err := o.set(&s); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}
