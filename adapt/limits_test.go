package adapt_test

import (
	"fmt"
	"testing"
	"time"
)

// beyond is a scenario for the limits of the method: a downstream of 400 requests a second.
func beyond(change func(*scenario)) *scenario {
	s := &scenario{
		workers: 12, service: 30 * time.Millisecond, variation: 0.25,
		queue: 5000, patience: 10 * time.Second,
		target: 100 * time.Millisecond, min: 20, max: 2000, start: 2000, burst: 5,
	}
	change(s)
	s.phases = []phase{{3 * time.Minute, 1, 1, 1.5 * float64(s.count())}}
	return s
}

// Newcomers that overtake keep the median low before a queue, but not the mean.
func TestNewestFirstAndRandomOrder(t *testing.T) {
	for _, c := range []struct {
		order   order
		goodput float64
		p99     time.Duration
	}{{newestFirst, 340, 400 * time.Millisecond}, {anyOrder, 360, 150 * time.Millisecond}} {
		for seed := range uint64(2) {
			r := simulate(beyond(func(s *scenario) { s.order = c.order }), seed)
			goodput, p99 := r.between(settle, 3*time.Minute)
			if goodput < c.goodput || p99 > c.p99 {
				t.Errorf("order %d, seed %d: goodput %.0f, p99 %v, want at least %v and at most %v",
					c.order, seed, goodput, p99, c.goodput, c.p99)
			}
		}
	}
}

// The rates of controllers with one downstream stay within a factor of two if Max is at most four
// times Min.
func TestSeveralControllers(t *testing.T) {
	for _, c := range []struct {
		count     int
		variation float64
		target    time.Duration
	}{
		{2, 0.25, 100 * time.Millisecond},
		{2, 0.5, 100 * time.Millisecond},
		{2, 1, 200 * time.Millisecond},
		{3, 0.5, 100 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s := beyond(func(s *scenario) {
				s.clients, s.join, s.variation, s.target = c.count, 20*time.Second, c.variation, c.target
				s.min, s.max, s.start = 100, 400, 400
			})
			r := simulate(s, 1)
			if goodput, _ := r.between(time.Minute, 3*time.Minute); goodput < 0.93*s.full() {
				t.Errorf("goodput %.0f of %.0f", goodput, s.full())
			}
			for minute := range 2 {
				low, high := s.max, s.min
				for _, rates := range r.rates {
					from := int(time.Duration(minute+1) * time.Minute / step)
					m := mean(rates[from : from+int(time.Minute/step)])
					low, high = min(low, m), max(high, m)
				}
				if high > 2*low {
					t.Errorf("rates of %.0f to %.0f a second in minute %d", low, high, minute+1)
				}
			}
		})
	}
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}
