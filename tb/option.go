package tb

import (
	"fmt"
	"time"
)

// DefaultMaxKeys is the bound of a limiter's table if WithMaxKeys is not given.
const DefaultMaxKeys = 1 << 20

// maxMaxKeys is the largest bound that WithMaxKeys accepts.
const maxMaxKeys = 1 << 30

// Overflow says what happens to a new key when the table is full of buckets of
// which none is full.
type Overflow int

const (
	// ForgiveLeast evicts the bucket that is nearest to full and forgives what it
	// still owed. No new key is ever refused; what was forgiven is in Stats.
	ForgiveLeast Overflow = iota
	// RefuseNew refuses the new key until a bucket is full, and says when in
	// RetryAfter. Nothing is ever forgiven.
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

// Option configures a limiter. The options are the functions of this package that
// return one.
type Option struct{ set func(*Settings) error }

// WithClock sets the clock, which is read exactly once in each call of Allow,
// AllowN, AllowCost and Peek that has a valid cost. The default is the monotonic clock
// of the process.
func WithClock(now func() time.Time) Option {
	return Option{func(s *Settings) error {
		if now == nil {
			return &ConfigError{"WithClock", "nil", "a function"}
		}
		s.Now = now
		return nil
	}}
}

// WithMaxKeys sets the most keys that the limiter holds at any instant, 1 to
// 1<<30. The default is DefaultMaxKeys; there is no "unbounded".
func WithMaxKeys(n int) Option {
	return Option{func(s *Settings) error {
		if n < 1 || n > maxMaxKeys {
			return &ConfigError{"WithMaxKeys", n, fmt.Sprintf("1 to %d", maxMaxKeys)}
		}
		s.MaxKeys = n
		return nil
	}}
}

// WithOverflow sets what happens to new keys when no bucket is free to go. The
// default is ForgiveLeast.
func WithOverflow(p Overflow) Option {
	return Option{func(s *Settings) error {
		if p != ForgiveLeast && p != RefuseNew {
			return &ConfigError{"WithOverflow", p, "ForgiveLeast or RefuseNew"}
		}
		s.Overflow = p
		return nil
	}}
}

// Settings is what a list of options says. It is for those who implement a
// limiter; those who use one pass the options.
type Settings struct {
	Now      func() time.Time // nil means the monotonic clock
	MaxKeys  int
	Overflow Overflow
}

// Apply returns the settings that opts describe, later ones winning, or the
// *ConfigError of the first that is out of range.
func Apply(opts ...Option) (Settings, error) {
	s := Settings{MaxKeys: DefaultMaxKeys}
	for _, o := range opts {
		if o.set == nil { // the zero Option says nothing
			continue
		}
		if err := o.set(&s); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}
