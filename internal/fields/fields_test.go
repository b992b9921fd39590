package fields_test

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/fields"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestRule(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second}
	r := fields.NewRule(`a "b"`, 10, limit, "")
	list, begin, end := r.AppendItem(nil, 7, 2)
	if string(list) != `"a \"b\"";r=7;t=2` || string(list[begin:end]) != "7" {
		t.Errorf("item %s, left %s", list, list[begin:end])
	}
	other := fields.NewRule("c", 5, tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}, "content-bytes")
	list, begin, end = other.AppendItem(list, 12, 3)
	if string(list) != `"a \"b\"";r=7;t=2, "c";r=12;t=3` || string(list[begin:end]) != "12" {
		t.Errorf("items %s, left %s", list, list[begin:end])
	}
	policies := string(other.AppendPolicy(r.AppendPolicy(nil)))
	if want := `"a \"b\"";q=10;w=4, "c";q=5;w=36000;qu="content-bytes"`; policies != want {
		t.Errorf("policies %s, want %s", policies, want)
	}
}

func TestSustained(t *testing.T) {
	long := tb.Limit{Capacity: 1<<30 - 1, Tokens: 1, Per: 931_320 * time.Second}
	never := tb.Limit{Capacity: tb.MaxCapacity, Tokens: 1, Per: tb.Never}
	for _, tt := range []struct {
		rule       fields.Rule
		window     uint64
		left, want int64
	}{
		{fields.NewRule("a", 10, tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second}, ""), 4, 9, 4},
		{fields.NewRule("a", 10, tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second}, ""), 4, 2, 1},
		{fields.NewRule("a", 10, tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second}, ""), 4, 99, 4},
		{fields.NewRule("a", 7, tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, ""), 10, 3, 5},
		{fields.NewRule("a", tb.MaxCapacity, never, ""), 1e15 - 1, 1 << 30, 1e15 - 1},
		{fields.NewRule("a", 0, tb.Limit{}, ""), 0, 5, 0},
		{fields.NewRule("a", 201, tb.Limit{Capacity: 201, Tokens: 100, Per: time.Second}, ""), 3, 67, 1},
		{fields.NewRule("a", 1e9, tb.Limit{Capacity: 1e9, Tokens: 1e9, Per: time.Second}, ""), 1, 5, 1},
		{fields.NewRule("a", 1, tb.Limit{Capacity: 999_999, Tokens: 1, Per: 1e18}, ""),
			999_999_000_000_000, 1, 999_999_000_000_000},
		{fields.NewRule("a", 1, tb.Limit{Capacity: 1e6, Tokens: 1, Per: 1e18}, ""), 1e15 - 1, 0, 0},
		// Rounding up carries into the upper bits of a product of more than 64.
		{fields.NewRule("a", 1<<30-1, long, ""), 999_997_234_596_360, 33_038_209, 33_038_209 * 931_320},
		{fields.NewRule("a", 1<<30-1, long, ""), 999_997_234_596_360, 33_038_210, 33_038_210 * 931_320},
	} {
		if got := tt.rule.Sustained(uint64(tt.left)); tt.rule.Window != tt.window || got != tt.want {
			t.Errorf("quota %s: window %d, %d left last %d, want %d and %d",
				tt.rule.Quota, tt.rule.Window, tt.left, got, tt.window, tt.want)
		}
	}
}

func TestResetAt(t *testing.T) {
	now := time.Unix(100, 1)
	for _, tt := range []struct {
		full  time.Duration
		retry int64
		want  int64
	}{{0, 0, 101}, {time.Second - 1, 0, 101}, {time.Second, 0, 102}, {time.Second, 30, 130}} {
		if got := fields.ResetAt(now, tt.full, tt.retry); got != tt.want {
			t.Errorf("full in %v, retry in %d: %d, want %d", tt.full, tt.retry, got, tt.want)
		}
	}
}
