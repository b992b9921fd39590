package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// chargesAsMutex makes random calls of TakeAll and Cancel, in simulated time, on the scripts and on
// tb/mutex. The decisions and the levels must be the same bit for bit.
func chargesAsMutex(s *simulator) error {
	for seed := range uint64(6) {
		if err := s.compareCharges(rand.New(rand.NewPCG(seed, 17))); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

func (s *simulator) compareCharges(rng *rand.Rand) error {
	ctx := context.Background()
	limit := tb.Limit{Capacity: 1 + rng.IntN(20), Tokens: 1 + rng.Int64N(20), Per: time.Second}
	if rng.IntN(2) == 0 {
		limit.Per += 7 * time.Microsecond
	}
	now := uint64(noon)
	clock := func() time.Time { return time.UnixMicro(int64(now)) }
	l, err := s.newLimiter(clock, limit, WithPrefix(fmt.Sprint(rng.Uint64())), WithMaxDenial(0))
	if err != nil {
		return err
	}
	defer l.Close()
	oracle, err := mutex.New[string](limit, tb.WithClock(clock))
	if err != nil {
		return err
	}
	if _, err := oracle.AllowAt(time.Unix(0, 0), "the first reading", 1); err != nil {
		return err
	}
	keys := []string{"a", "b", "c"}
	var granted []*pair
	for range 60 {
		now += uint64(rng.IntN(1_000_000/int(limit.Tokens))) - uint64(rng.IntN(20))
		if n := len(granted); n > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(n)
			granted[i].got.Cancel()
			granted[i].want.Cancel()
			granted[i] = granted[n-1]
			granted = granted[:n-1]
		} else {
			rng.Shuffle(3, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			all, err := takePairs(l, oracle, clock(), keys[:1+rng.IntN(3)], rng)
			if err != nil {
				return err
			}
			granted = append(granted, all...)
		}
		for _, key := range keys {
			got, err := l.Level(ctx, key)
			if want, _ := oracle.Level(ctx, key); err != nil || got != want {
				return fmt.Errorf("limit %+v: level %+v, %w, tb/mutex has %+v", limit, got, err, want)
			}
		}
	}
	return nil
}

// pair is a charge and the same charge of tb/mutex.
type pair struct {
	got  tb.Charge
	want *mutex.Charge[string]
}

// takePairs takes random costs of the keys, and returns the charges if they are granted.
func takePairs(
	l *Limiter, oracle *mutex.Limiter[string], now time.Time, keys []string, rng *rand.Rand,
) ([]*pair, error) {
	var pairs []*pair
	var got, want []tb.Charge
	for _, key := range keys {
		cost := 0.1 + rng.Float64()*float64(l.layout.Load().capacity/l.layout.Load().scale)/3
		c, err := l.Charge(key, cost)
		if err != nil {
			return nil, err
		}
		o, err := oracle.Charge(key, cost)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, &pair{c, &o})
		got, want = append(got, c), append(want, &o)
	}
	gotAll, ok, err := TakeAll(context.Background(), now, got, nil)
	if err != nil {
		return nil, err
	}
	wantAll, wantOK, err := tb.TakeAll(now, want, nil)
	if err != nil {
		return nil, err
	}
	if fmt.Sprint(ok, gotAll) != fmt.Sprint(wantOK, wantAll) {
		return nil, fmt.Errorf("%t %+v, tb/mutex has %t %+v", ok, gotAll, wantOK, wantAll)
	}
	if !ok {
		return nil, nil
	}
	return pairs, nil
}
