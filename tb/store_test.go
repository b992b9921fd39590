package tb_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// settable is a StoreLimiter whose SetLimit may fail. It notes the limits that it gets.
type settable struct {
	tb.StoreLimiter
	limit tb.Limit
	got   []int // capacities
	fails map[int]error
}

func (s *settable) Limit() tb.Limit { return s.limit }

func (s *settable) SetLimit(l tb.Limit) error {
	s.got = append(s.got, l.Capacity)
	if err := s.fails[l.Capacity]; err != nil {
		return err
	}
	s.limit = l
	return nil
}

func TestSetLimitsSetsAllOrNone(t *testing.T) {
	bad, worse := errors.New("bad"), errors.New("worse")
	limit := func(capacity int) tb.Limit { return tb.Limit{Capacity: capacity, Tokens: 1, Per: 1} }
	for _, tt := range []struct {
		name   string
		fails  [4]map[int]error
		want   [4][]int // what the limiters get: they have 1, and shall have 2; the second has 2
		errors []error
	}{
		{"all", [4]map[int]error{}, [4][]int{{2}, nil, {2}, {2}}, nil},
		{"none", [4]map[int]error{2: {2: bad}}, [4][]int{{2, 1}, nil, {2}, nil}, []error{bad}},
		{"an error of giving back", [4]map[int]error{{1: worse}, nil, nil, {2: bad}},
			[4][]int{{2, 1}, nil, {2, 1}, {2}}, []error{bad, worse}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all [4]*settable
			for i := range all {
				all[i] = &settable{limit: limit(1), fails: tt.fails[i]}
			}
			all[1].limit = limit(2)
			err := tb.SetLimits(func(yield func(tb.StoreLimiter, tb.Limit) bool) {
				for _, l := range all {
					if !yield(l, limit(2)) {
						return
					}
				}
			})
			for _, want := range tt.errors {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want %v in it", err, want)
				}
			}
			if (err == nil) != (tt.errors == nil) {
				t.Errorf("error %v", err)
			}
			for i, l := range all {
				if !slices.Equal(l.got, tt.want[i]) {
					t.Errorf("limiter %d got %v, want %v", i, l.got, tt.want[i])
				}
			}
		})
	}
}
