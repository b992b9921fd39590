package tb

import (
	"errors"
	"fmt"
)

// ErrInvalidCost is returned for a cost that is zero, negative, NaN or infinite.
// Such a call changes nothing.
var ErrInvalidCost = errors.New("tb: cost must be positive and finite")

// ErrInvalidKey is returned for a key that is not equal to itself, such as a
// floating-point NaN: no table could find it again. Such a call changes nothing.
var ErrInvalidKey = errors.New("tb: key must equal itself (it contains a NaN)")

// ConfigError says which field of a configuration has an impossible value.
type ConfigError struct {
	Field string // the name of the field or option
	Value any    // what was given
	Range string // what is accepted
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("tb: %s is %v, want %s", e.Field, e.Value, e.Range)
}
