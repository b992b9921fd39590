package redis

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestNamesOfKeys(t *testing.T) {
	for _, tt := range []struct {
		opts      []Option
		key, want string
	}{
		{nil, "a", "tb:{a}"},
		{nil, "", "tb:{}"},
		{nil, "a}b", "tb:{a}b}"},
		{[]Option{WithPrefix("")}, "a", "{a}"},
		{[]Option{WithPrefix("login:")}, "a", "login:{a}"},
	} {
		s, err := apply(tt.opts)
		if got := s.name(tt.key); err != nil || got != tt.want {
			t.Errorf("key %q is %q, %v, want %q", tt.key, got, err, tt.want)
		}
	}
}

func TestNamesOfLongKeys(t *testing.T) {
	long := strings.Repeat("x", longest)
	var s settings
	names := map[string]bool{}
	for _, key := range []string{
		long, long + "x", long + "y", long + long, s.name(long + "x")[1:258],
	} {
		name := s.name(key)
		if names[name] || len(name) > longest+3 {
			t.Errorf("a key of %d bytes has the name %q", len(key), name)
		}
		names[name] = true
	}
	if name := s.name(long); name != "{"+long+"}" {
		t.Errorf("the longest key that stays has the name %q", name)
	}
}

func TestLongestOptions(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	c := dial(t, redistest.Start(t))
	for i, opts := range [][]Option{
		{WithTimeout(longest), WithMaxDenial(longest)},
		{WithTimeout(longest), WithMaxDenial(longest), WithoutBatching()},
		{WithTimeout(longest), WithLease(longest)},         // does nothing
		{WithTimeout(longest), WithLease(10 * time.Hour)},  // reserves 10 tokens
		{WithTimeout(longest), WithLease(500 * time.Hour)}, // reserves half
	} {
		limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}
		l := newLimiter(t, c, limit, append(opts, WithPrefix(strconv.Itoa(i)))...)
		whole := int(l.layout.Load().capacity / l.layout.Load().scale)
		if want := []int{1000, 1000, 1000, 990, 500}[i]; whole != want {
			t.Errorf("%d: a capacity of %d, want %d", i, whole, want)
		}
		for _, tt := range []struct {
			n    int
			want tb.Decision
		}{{1, granted(whole - 1)}, {whole - 1, granted(0)}, {math.MaxInt, refused(tb.Never, 0)}} {
			wantTake(t, l, "a", float64(tt.n), tt.want)
		}
		for range 3 {
			if o := decide(t, l, "a", ByDenialCache); o.RetryAfter > time.Hour {
				t.Errorf("%d: %+v", i, o)
			}
		}
		if _, ok := takeAll(t, newCharge(t, l, "b", 1), newCharge(t, l, "c", 0.1)); !ok {
			t.Errorf("%d: two full buckets refuse", i)
		}
	}
}
