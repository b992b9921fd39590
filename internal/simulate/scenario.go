package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// Scenario is a demand, a downstream, and the bounds of the rate.
type Scenario struct {
	Name  string
	Title string

	Workers   int           // at full capacity
	Service   time.Duration // mean time that a worker takes for a request
	Variation float64       // standard deviation of that time, as a share of the mean
	Tail      float64       // share of the requests that take ten times as long
	Queue     int           // requests that may wait; the next one fails
	Patience  time.Duration // after which a client leaves
	Jitter    float64       // each quarter of a second the workers are slower or faster by up to this
	Quota     float64       // requests a second that the downstream accepts; 0 for all
	Errors    float64       // share of the requests that fail at any load
	Slow      float64       // share of the requests that take SlowTime and hold no worker
	SlowTime  time.Duration

	Clients int           // with a limiter each; 0 is one
	Join    time.Duration // between the first requests of one client and the next

	Target   time.Duration // p99 to keep
	Min, Max float64       // rate of each client
	Start    float64       // first rate of each client
	Burst    int
	Phases   []Phase
}

// Phase is a time in which demand and capacity do not change. Capacity and demand are relative to
// the full capacity.
type Phase struct {
	Length  time.Duration
	Workers float64 // share of the workers
	Speed   float64 // of each worker
	Demand  float64
}

// steps are the phases in which the capacity falls to a third and recovers.
func steps(workers, speed float64) []Phase {
	const minute = time.Minute
	return []Phase{{minute, 1, 1, 1.5}, {minute, workers, speed, 1.5}, {minute, 1, 1, 1.5}}
}

// Scenarios returns all scenarios. The full capacity is 1,000 requests a second except in the last
// scenario.
func Scenarios() []Scenario {
	base := Scenario{
		Name: "workers", Title: "Two of three workers fail",
		Workers: 30, Service: 30 * time.Millisecond, Variation: 0.5,
		Queue: 5000, Patience: time.Second,
		Target: 200 * time.Millisecond, Min: 50, Max: 4000, Start: 1000, Burst: 20,
		Phases: steps(1./3, 1),
	}
	list := []Scenario{base}
	add := func(name, title string, change func(*Scenario)) {
		s := base
		s.Name, s.Title = name, title
		change(&s)
		list = append(list, s)
	}
	add("speed", "All workers are three times as slow", func(s *Scenario) {
		s.Workers, s.Service, s.Phases = 20, 20*time.Millisecond, steps(1, 1./3)
	})
	add("noise", "The same with 20 % noise and a long tail", func(s *Scenario) {
		s.Jitter, s.Tail = 0.2, 0.004
	})
	add("clients", "Two clients, the second joins after 20 s", func(s *Scenario) {
		s.Clients, s.Join = 2, 20*time.Second
	})
	add("start", "The first rate is four times the capacity", func(s *Scenario) {
		s.Start = s.Max
	})
	add("surge", "The demand alternates between half and three times the capacity", func(s *Scenario) {
		const half = time.Minute / 2
		s.Phases = []Phase{{half, 1, 1, 0.5}, {half, 1, 1, 3}, {half, 1, 1, 0.5}, {half, 1, 1, 3}}
	})
	add("quota", "The downstream accepts 500 a second and answers 429 to more", func(s *Scenario) {
		s.Quota = 500
	})
	add("errors", "5 % of the requests fail at any load", func(s *Scenario) {
		s.Errors = 0.05
	})
	add("attack", "2 % of the requests are made to take half a second", func(s *Scenario) {
		s.Slow, s.SlowTime = 0.02, 500*time.Millisecond
	})
	add("small", "Six workers, then two; full capacity 200 a second", func(s *Scenario) {
		s.Workers, s.Min, s.Max, s.Start, s.Burst = 6, 10, 800, 200, 5
	})
	return list
}

// full returns the full capacity, in requests a second.
func (s *Scenario) full() float64 { return float64(s.Workers) / s.Service.Seconds() }

// Capacity returns the capacity in a phase, in requests a second.
func (s *Scenario) Capacity(p Phase) float64 {
	c := s.full() * p.Workers * p.Speed
	if s.Quota > 0 {
		c = min(c, s.Quota)
	}
	return c
}

// clients returns the number of clients.
func (s *Scenario) clients() int { return max(1, s.Clients) }

// length returns the length of all phases.
func (s *Scenario) length() (d time.Duration) {
	for _, p := range s.Phases {
		d += p.Length
	}
	return d
}

// phaseAt returns the phase at an instant.
func (s *Scenario) phaseAt(now time.Duration) Phase {
	for _, p := range s.Phases {
		if now -= p.Length; now < 0 {
			return p
		}
	}
	return s.Phases[len(s.Phases)-1]
}

// workers returns the number of workers at an instant, and the factor by which they are slower.
func (s *Scenario) workers(now time.Duration) (n int, slower float64) {
	p := s.phaseAt(now)
	n, slower = int(math.Round(float64(s.Workers)*p.Workers)), 1/p.Speed
	if s.Jitter > 0 {
		quarter := rand.New(rand.NewPCG(uint64(now/(250*time.Millisecond)), 7))
		slower *= 1 + s.Jitter*(2*quarter.Float64()-1)
	}
	return n, slower
}

// work returns the time that a worker takes for a request. Its logarithm has a normal
// distribution.
func (s *Scenario) work(random *rand.Rand) float64 {
	mean := s.Service.Seconds() / (1 + 9*s.Tail)
	if random.Float64() < s.Tail {
		mean *= 10
	}
	variance := math.Log(1 + s.Variation*s.Variation)
	return mean * math.Exp(math.Sqrt(variance)*random.NormFloat64()-variance/2)
}
