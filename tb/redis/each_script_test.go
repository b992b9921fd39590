package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// takeEachAsTake makes random calls on several buckets at once by takeeach.lua, and on one bucket
// after another by take.lua. The buckets must be the same before and after, with their expiry.
func takeEachAsTake(s *simulator) error {
	for seed := range uint64(10) {
		if err := s.compareEach(rand.New(rand.NewPCG(seed, 25))); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

func (s *simulator) compareEach(rng *rand.Rand) error {
	m, err := s.layout(perSecond(1+rng.IntN(9), 1+rng.Int64N(5)))
	if err != nil {
		return err
	}
	single, joint := make([]*bucket, 5), make([]*bucket, 5)
	for i := range single {
		single[i], joint[i] = s.bucket(fmt.Sprint("single", i)), s.bucket(fmt.Sprint("joint", i))
	}
	now := uint64(noon)
	clientClock := rng.IntN(4) == 0
	for range 40 {
		now += uint64(rng.IntN(500_000))
		if rng.IntN(20) == 0 {
			now -= 2_000_000 // the clock is set back
		}
		st := []step{{now: now, clientClock: clientClock}}
		arg := slices.Clone(m.header)
		var keys []string
		var want []state
		var chosen []int
		for _, i := range rng.Perm(len(single))[:1+rng.IntN(len(single))] {
			items := make([]item, 1+rng.IntN(3))
			for j := range items {
				items[j] = item{1 + rng.Uint64N(m.capacity+m.capacity/8), now - 1 + rng.Uint64N(4)}
			}
			before, ok, err := s.takeItems(&m, single[i].key, st, items)
			if err != nil {
				return err
			}
			if !ok { // all deadlines have passed, and only the new script returns the bucket
				continue
			}
			arg = appendBucket(arg, items)
			keys, want, chosen = append(keys, joint[i].key), append(want, before), append(chosen, i)
		}
		if len(keys) == 0 {
			continue
		}
		replies, err := s.pipeline(m.takeEach, keys, st, func(step) []byte { return arg })
		if err != nil {
			return err
		}
		got := make([]state, len(want))
		text, err := replies[0].ToString()
		if _, ok := parseStates(text, got); err != nil || !ok || !slices.Equal(got, want) {
			return fmt.Errorf("%q: %+v, %w, want %+v", text, got, err, want)
		}
		for _, i := range chosen {
			v, expiry := joint[i].value()
			if w, e := single[i].value(); v != w || expiry != e {
				return fmt.Errorf("the value is %q until %d, want %q until %d", v, expiry, w, e)
			}
		}
	}
	return errors.Join(single[0].err, joint[0].err)
}

// takeItems runs take.lua. It reports false if all deadlines have passed.
func (s *simulator) takeItems(m *layout, key string, st []step, items []item) (
	before state, ok bool, err error,
) {
	replies, err := s.pipeline(m.script, []string{key}, st, func(step) []byte {
		return m.argument(items)
	})
	if err != nil || replies[0].IsInt64() {
		return state{}, false, err
	}
	text, err := replies[0].ToString()
	if before, ok = m.parse(text, items); !ok {
		return state{}, false, fmt.Errorf("reply %q, %w", text, err)
	}
	return before, true, nil
}

// takeEachError expects that a value that is not a bucket stops the costs of all buckets.
func takeEachError(s *simulator) error {
	m, err := s.layout(perSecond(10, 1))
	if err != nil {
		return err
	}
	first, last := s.bucket("first"), s.bucket("last")
	last.set("no bucket")
	items := []item{{m.scale, noDeadline}}
	arg := appendBucket(appendBucket(slices.Clone(m.header), items), items)
	_, err = s.pipeline(m.takeEach, []string{first.key, last.key}, []step{{now: noon}},
		func(step) []byte { return arg })
	var e *rueidis.RedisError
	if !errors.As(err, &e) || !strings.HasPrefix(e.Error(), "NOBUCKET") {
		return fmt.Errorf("want NOBUCKET, got %w", err)
	}
	exists := s.client.B().Exists().Key(first.key).Build()
	if n, err := s.client.Do(context.Background(), exists).ToInt64(); n != 0 || err != nil {
		return fmt.Errorf("the first bucket was written: %d, %w", n, err)
	}
	return errors.Join(first.err, last.err)
}
