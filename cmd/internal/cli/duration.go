package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// NotNegative returns an error that names the first of the flags with a negative value.
func NotNegative(flags map[string]time.Duration) error {
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if flags[flag] < 0 {
			return fmt.Errorf("%s=%v: want 0s or more", flag, flags[flag])
		}
	}
	return nil
}
