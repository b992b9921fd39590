package redis

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestLimitsInAndOutOfRange(t *testing.T) {
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, tt := range []struct {
		limit tb.Limit
		ok    bool
	}{
		{perSecond(1, 1), true},
		{perSecond(tb.MaxCapacity, 1_000_000_000), true},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1<<48 - 1)}, true},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1 << 48)}, false},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1<<48 - 1, Per: us(1 << 47)}, true},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1<<48 + 1, Per: us(1 << 47)}, false},
		{tb.Limit{Capacity: 1, Tokens: math.MaxInt64 - 1, Per: math.MaxInt64}, false},
	} {
		_, err := newLayout(tt.limit, 0)
		var cfg *tb.ConfigError
		if tt.ok && err != nil || !tt.ok && (!errors.As(err, &cfg) || cfg.Field != "Tokens/Per") {
			t.Errorf("%+v: got error %v, in range %t", tt.limit, err, tt.ok)
		}
	}
}

func TestErrorNamesNAndD(t *testing.T) {
	_, err := newLayout(tb.Limit{Capacity: 1 << 23, Tokens: 3, Per: time.Microsecond << 48}, 0)
	want := "ratelimit: Tokens/Per is N/D = 3/281474976710656 units a microsecond, " +
		"with 1 units in a token, want N and D below 2^48 in lowest terms"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err = newLayout(tb.Limit{}, 0); err == nil || !strings.Contains(err.Error(), "Capacity") {
		t.Errorf("the zero limit: got error %v, want the error of tb", err)
	}
}

func TestRepliesOfAnotherFormAreRefused(t *testing.T) {
	for _, text := range []string{"", "OK", strings.Repeat("x", 18)} {
		if r, err := parse(text, 1); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}
