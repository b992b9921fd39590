package rate_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
)

func TestSometimes(t *testing.T) {
	for name, tt := range map[string]struct {
		sometimes *rate.Sometimes
		calls     []int // of ten, one second apart
	}{
		"zero":     {&rate.Sometimes{}, []int{0}},
		"negative": {&rate.Sometimes{First: -1, Every: -1, Interval: -1}, []int{0}},
		"first":    {&rate.Sometimes{First: 3}, []int{0, 1, 2}},
		"every":    {&rate.Sometimes{Every: 4}, []int{0, 4, 8}},
		"interval": {&rate.Sometimes{Interval: 3 * time.Second}, []int{0, 3, 6, 9}},
		"all": {
			&rate.Sometimes{First: 2, Every: 5, Interval: 3 * time.Second}, []int{0, 1, 4, 5, 8},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls []int
			for i := range 10 {
				tt.sometimes.Do(func() { calls = append(calls, i) })
				time.Sleep(time.Second)
			}
			if !slices.Equal(calls, tt.calls) {
				t.Errorf("%s: calls %v, want %v", name, calls, tt.calls)
			}
		})
	}
}
