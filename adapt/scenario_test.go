package adapt_test

import (
	"math"
	"math/rand/v2"
	"time"
)

type scenario struct {
	name  string
	title string

	workers   int           // at full capacity
	service   time.Duration // mean time that a worker takes for a request
	variation float64       // standard deviation of that time, as a share of the mean
	tail      float64       // share of the requests that take ten times as long
	queue     int           // requests that may wait; the next one fails
	patience  time.Duration // after which a client leaves
	order     order
	jitter    float64 // each quarter of a second the workers are slower or faster by up to this
	quota     float64 // requests a second that the downstream accepts; 0 for all
	errors    float64 // share of the requests that fail at any load
	slow      float64 // share of the requests that take slowTime and hold no worker
	slowTime  time.Duration

	clients int           // with a limiter each; 0 is one
	join    time.Duration // between the first requests of one client and the next

	target   time.Duration // p99 to keep
	min, max float64       // rate of each client
	start    float64       // first rate of each client
	burst    int
	phases   []phase
}

type order int

const (
	oldestFirst order = iota
	anyOrder
	newestFirst
)

// phase is a time in which demand and capacity do not change. Capacity and demand are relative to
// the full capacity.
type phase struct {
	length  time.Duration
	workers float64 // share of the workers
	speed   float64 // of each worker
	demand  float64
}

// steps are the phases in which the capacity falls to a third and recovers.
func steps(workers, speed float64) []phase {
	const minute = time.Minute
	return []phase{{minute, 1, 1, 1.5}, {minute, workers, speed, 1.5}, {minute, 1, 1, 1.5}}
}

// scenarios returns all scenarios. The full capacity is 1,000 requests a second except in the last
// scenario.
func scenarios() []scenario {
	base := scenario{
		name: "workers", title: "Two of three workers fail",
		workers: 30, service: 30 * time.Millisecond, variation: 0.5,
		queue: 5000, patience: time.Second,
		target: 200 * time.Millisecond, min: 50, max: 4000, start: 1000, burst: 20,
		phases: steps(1./3, 1),
	}
	list := []scenario{base}
	add := func(name, title string, change func(*scenario)) {
		s := base
		s.name, s.title = name, title
		change(&s)
		list = append(list, s)
	}
	add("speed", "All workers are three times as slow", func(s *scenario) {
		s.workers, s.service, s.phases = 20, 20*time.Millisecond, steps(1, 1./3)
	})
	add("noise", "Two of three workers fail, with 20 % noise and a long tail", func(s *scenario) {
		s.jitter, s.tail = 0.2, 0.004
	})
	add("clients", "Two clients, the second joins after 20 s", func(s *scenario) {
		s.clients, s.join = 2, 20*time.Second
	})
	add("start", "The first rate is four times the capacity", func(s *scenario) {
		s.start = s.max
	})
	add("surge", "The demand alternates between half and three times the capacity", func(s *scenario) {
		const half = time.Minute / 2
		s.phases = []phase{{half, 1, 1, 0.5}, {half, 1, 1, 3}, {half, 1, 1, 0.5}, {half, 1, 1, 3}}
	})
	add("quota", "The downstream accepts 500 a second and answers 429 to more", func(s *scenario) {
		s.quota = 500
	})
	add("errors", "5 % of the requests fail at any load", func(s *scenario) {
		s.errors = 0.05
	})
	add("attack", "2 % of the requests are made to take half a second", func(s *scenario) {
		s.slow, s.slowTime = 0.02, 500*time.Millisecond
	})
	add("small", "Six workers, then two; full capacity 200 a second", func(s *scenario) {
		s.workers, s.min, s.max, s.start, s.burst = 6, 10, 800, 200, 5
	})
	return list
}

func (s *scenario) full() float64 { return float64(s.workers) / s.service.Seconds() }

func (s *scenario) capacity(p phase) float64 {
	c := s.full() * p.workers * p.speed
	if s.quota > 0 {
		c = min(c, s.quota)
	}
	return c
}

func (s *scenario) count() int { return max(1, s.clients) }

func (s *scenario) length() (d time.Duration) {
	for _, p := range s.phases {
		d += p.length
	}
	return d
}

func (s *scenario) phaseAt(now time.Duration) phase {
	for _, p := range s.phases {
		if now -= p.length; now < 0 {
			return p
		}
	}
	return s.phases[len(s.phases)-1]
}

// workersAt returns the number of workers at an instant, and the factor by which they are slower.
func (s *scenario) workersAt(now time.Duration) (n int, slower float64) {
	p := s.phaseAt(now)
	n, slower = int(math.Round(float64(s.workers)*p.workers)), 1/p.speed
	if s.jitter > 0 {
		quarter := rand.New(rand.NewPCG(uint64(now/(250*time.Millisecond)), 7))
		slower *= 1 + s.jitter*(2*quarter.Float64()-1)
	}
	return n, slower
}

// work returns the time that a worker takes for a request. Its logarithm has a normal
// distribution.
func (s *scenario) work(random *rand.Rand) float64 {
	mean := s.service.Seconds() / (1 + 9*s.tail)
	if random.Float64() < s.tail {
		mean *= 10
	}
	variance := math.Log(1 + s.variation*s.variation)
	return mean * math.Exp(math.Sqrt(variance)*random.NormFloat64()-variance/2)
}
