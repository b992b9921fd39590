package adapt_test

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
)

func benchmarked(tb0 testing.TB) *adapt.Controller {
	c, err := adapt.New(adapt.LimiterFunc(func(tb.Limit) error { return nil }), config())
	if err != nil {
		tb0.Fatal(err)
	}
	return c
}

func BenchmarkRequest(b *testing.B) {
	c := benchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		c.Begin().Done()
	}
}

func TestReportsDoNotAllocate(t *testing.T) {
	c := benchmarked(t)
	if n := testing.AllocsPerRun(1000, func() {
		c.Begin().Done()
		c.Begin().Fail(1)
		c.Begin().Cancel()
		c.Refused()
		c.Stats()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
