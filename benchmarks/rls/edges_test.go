package main

import (
	"testing"
	"time"
)

func at(ms ...int) (all []grant) {
	begin := time.Now()
	for _, n := range ms {
		t := begin.Add(time.Duration(n) * time.Millisecond)
		all = append(all, grant{t, t})
	}
	return all
}

func TestExcess(t *testing.T) {
	for _, c := range []struct {
		all  []grant
		want int
	}{
		{at(), -2},
		{at(0), -1},
		{at(0, 0), 0},
		{at(0, 0, 0), 1},
		{at(0, 0, 500), 0},
		{at(0, 5000, 5000, 5000, 5000), 2},
		{at(0, 500, 1000, 1000, 1000), 1},
	} {
		if got := excess(c.all, 2, 2); got != c.want {
			t.Errorf("%v: %d, want %d", c.all, got, c.want)
		}
	}
}

func TestWorstBurst(t *testing.T) {
	if n := worstBurst(at(0, 60, 100, 120, 150, 400)); n != 4 {
		t.Error(n)
	}
}
