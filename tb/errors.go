package tb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrInvalidCost is returned for a cost that is zero, negative, NaN or infinite. Such a call
// changes nothing.
var ErrInvalidCost = errors.New("ratelimit: cost must be positive and finite")

// ErrInvalidKey is returned for a key that does not equal itself, such as a floating-point NaN:
// no table could find it again. Such a call changes nothing.
var ErrInvalidKey = errors.New("ratelimit: key must equal itself (it contains a NaN)")

// ErrTableFull is returned by Hold if the table has no room for a new key (RefuseNew).
var ErrTableFull = errors.New("ratelimit: the table has no room for a new key")

// ConfigError reports an impossible value in a configuration.
type ConfigError struct {
	Field string // name of the field or option
	Value any    // the impossible value
	Range string // accepted values
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("ratelimit: %s is %v, want %s", e.Field, e.Value, e.Range)
}

// WaitError is returned by Wait if it cannot wait for the tokens. It has taken nothing.
type WaitError struct {
	// Wait is the time until the tokens could be used, or Never.
	Wait time.Duration
	// Deadline reports that the context ends before that. Otherwise the cost is above the
	// capacity, too many tokens are already waited for, the table has no room for a new key, or the
	// clock ends before.
	Deadline bool
}

func (e *WaitError) Error() string {
	switch {
	case e.Wait == Never:
		return "ratelimit: no wait can help: the cost is above the capacity, or the clock ends before"
	case e.Deadline:
		return fmt.Sprintf("ratelimit: the wait of %v exceeds the deadline of the context", e.Wait)
	}
	return fmt.Sprintf("ratelimit: no wait of %v: too many tokens are waited for already, "+
		"or the table has no room for the key", e.Wait)
}

// Unwrap returns context.DeadlineExceeded if Deadline is true.
func (e *WaitError) Unwrap() error {
	if e.Deadline {
		return context.DeadlineExceeded
	}
	return nil
}
