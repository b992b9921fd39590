package redis

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestLimitsAreNarrowWideOrOutOfRange(t *testing.T) {
	const day = 24 * time.Hour
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, tt := range []struct {
		limit  tb.Limit
		script *script // nil if the limit is out of range
	}{
		{perSecond(1, 1), narrow},
		{perSecond(tb.MaxCapacity, 1_000_000_000), narrow},
		{tb.Limit{Capacity: 1_000_000, Tokens: 1_000_000, Per: day}, narrow},
		{tb.Limit{Capacity: 8_387, Tokens: 8_387, Per: day}, narrow},
		{tb.Limit{Capacity: 1 << 23, Tokens: 8_387, Per: day}, wide},
		// D is 2²⁶ and the capacity 2²⁷-2, so that (C+2)·D is 2⁵³: one unit less is narrow.
		{tb.Limit{Capacity: 1<<27 - 2, Tokens: 1, Per: us(1 << 26)}, wide},
		{tb.Limit{Capacity: 1<<27 - 3, Tokens: 1, Per: us(1 << 26)}, narrow},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1 << 26)}, narrow},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1<<26 + 1)}, wide},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1<<48 - 1)}, wide},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1 << 48)}, nil},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1<<48 - 1, Per: us(1 << 47)}, wide},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1<<48 + 1, Per: us(1 << 47)}, nil},
		{tb.Limit{Capacity: 1, Tokens: math.MaxInt64 - 1, Per: math.MaxInt64}, nil},
	} {
		m, err := newLayout(tt.limit)
		if tt.script != nil {
			if err != nil || m.script != tt.script {
				t.Errorf("%+v: wide is %v, error %v", tt.limit, m.script == wide, err)
			}
			continue
		}
		var cfg *tb.ConfigError
		if !errors.As(err, &cfg) || cfg.Field != "Tokens/Per" {
			t.Errorf("%+v: got error %v, want a *tb.ConfigError for Tokens/Per", tt.limit, err)
		}
	}
}

func TestErrorNamesNAndD(t *testing.T) {
	_, err := newLayout(tb.Limit{Capacity: 1 << 23, Tokens: 3, Per: time.Microsecond << 48})
	want := "tb: Tokens/Per is N/D = 3/281474976710656 units a microsecond, " +
		"with 1 units in a token, want N and D below 2^48 in lowest terms"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err = newLayout(tb.Limit{}); err == nil || !strings.Contains(err.Error(), "Capacity") {
		t.Errorf("the zero limit: got error %v, want the error of tb", err)
	}
}

func TestRepliesOfAnotherFormAreRefused(t *testing.T) {
	m, err := newLayout(perSecond(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"", "OK", strings.Repeat("x", 11), strings.Repeat("x", 19)} {
		if s, ok := m.parse(reply, nil); ok {
			t.Errorf("%q is %+v", reply, s)
		}
	}
}
