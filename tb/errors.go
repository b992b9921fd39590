package tb

import (
	"errors"
	"fmt"
)

// ErrInvalidCost is returned for a cost that is zero, negative, NaN or infinite.
// Such a call changes nothing.
var ErrInvalidCost = errors.New("tb: cost must be positive and finite")

// ErrInvalidKey is returned for a key that does not equal itself, such as a floating-point NaN:
// no table could find it again. Such a call changes nothing.
var ErrInvalidKey = errors.New("tb: key must equal itself (it contains a NaN)")

// ConfigError reports an impossible value in a configuration.
type ConfigError struct {
	Field string // name of the field or option
	Value any    // the impossible value
	Range string // accepted values
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("tb: %s is %v, want %s", e.Field, e.Value, e.Range)
}
