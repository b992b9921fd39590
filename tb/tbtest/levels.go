package tbtest

import (
	"context"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var levels = []test{
	{"LevelReportsTokensAndTimes", levelReportsTokensAndTimes},
	{"LevelIsExact", levelIsExact},
	{"LevelChangesNothing", levelChangesNothing},
}

// levelIs fails the test unless Level returns want.
func (f *fixture) levelIs(key string, want tb.Level) {
	f.Helper()
	got, err := skipUnless[hasLevel](f).Level(context.Background(), key)
	if err != nil || got != want {
		f.Fatalf("Level(%q) = %+v, %v, want %+v", key, got, err, want)
	}
}

func levelReportsTokensAndTimes(s *suite) {
	f := s.new(perSecond(10, 4))
	f.levelIs("a", tb.Level{Tokens: 10})
	f.granted("a", 7, 3)
	f.levelIs("a", tb.Level{
		Tokens: 3, NextToken: 250 * time.Millisecond, Full: 1750 * time.Millisecond,
	})
	f.Advance(100 * time.Millisecond)
	f.levelIs("a", tb.Level{
		Tokens: 3.4, NextToken: 150 * time.Millisecond, Full: 1650 * time.Millisecond,
	})
	f.Advance(-time.Second) // the bucket keeps its time
	f.levelIs("a", tb.Level{
		Tokens: 3, NextToken: 1150 * time.Millisecond, Full: 2650 * time.Millisecond,
	})
	f.Advance(time.Second + 1650*time.Millisecond)
	f.levelIs("a", tb.Level{Tokens: 10})

	f = s.new(tb.Limit{Capacity: 3, Tokens: 1, Per: math.MaxInt64})
	f.granted("a", 2, 1)
	f.levelIs("a", tb.Level{Tokens: 1, NextToken: math.MaxInt64, Full: tb.Never})
}

// levelIsExact checks that one more token, and all tokens, can be taken at the times that the
// level reports and not a nanosecond earlier.
func levelIsExact(s *suite) {
	for _, limit := range []tb.Limit{
		perSecond(10, 3), perSecond(7, 1000), {Capacity: 5, Tokens: 7, Per: 1000},
		{Capacity: 1 << 24, Tokens: 12_345, Per: time.Millisecond},
	} {
		f := s.new(limit)
		l := skipUnless[hasLevel](f)
		f.granted("a", limit.Capacity, 0)
		for i := range 20 {
			f.Advance(limit.Per / 7 * time.Duration(i%3))
			if !f.allow("a").Allowed {
				continue
			}
			level, err := l.Level(context.Background(), "a")
			if err != nil {
				f.Fatal(err)
			}
			whole := int(level.Tokens)
			now := f.ns.Load()
			check := func(wait time.Duration, n int) {
				c := f.charge("a", float64(n))
				f.exactAfter(wait, n, func() tb.Decision {
					d, err := c.Peek(f.Now())
					f.check(d, err)
					return d
				})
				f.ns.Store(now)
			}
			check(level.NextToken, whole+1)
			check(level.Full, limit.Capacity)
		}
	}
}

func levelChangesNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	f.levelIs("new", tb.Level{Tokens: 10})
	f.hasKeys(0)
	f.granted("a", 10, 0)
	f.Advance(2 * time.Second)
	f.levelIs("a", tb.Level{Tokens: 2, NextToken: time.Second, Full: 8 * time.Second})
	f.Set(0) // if Level had moved the bucket's time, this would be a late reading
	f.levelIs("a", tb.Level{NextToken: time.Second, Full: 10 * time.Second})
}
