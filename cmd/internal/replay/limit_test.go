package replay

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestDecisionsByHand(t *testing.T) {
	type step struct {
		client string
		second int
		left   int // tokens before, of a burst of 2 that refills 1 a second
		ok     bool
	}
	timeline := []step{
		{"a", 10, 2, true},
		{"a", 10, 1, true},
		{"a", 10, 0, false},
		{"b", 10, 2, true}, // another bucket
		{"a", 11, 1, true},
		{"a", 11, 0, false},
		{"a", 9, 0, false}, // late: no refill, and time does not move back
		{"a", 11, 0, false},
		{"a", 12, 1, true}, // had it moved back to 9, there would be 2
		{"a", 12, 0, false},
		{"b", 8, 1, true}, // late: decided on the bucket as it stands
		{"b", 10, 0, false},
		{"b", 11, 1, true},
		{"a", 60, 2, true}, // no more than the burst
		{"a", 60, 1, true},
		{"a", 60, 0, false},
	}
	o := options(t, "1", 2)
	m, err := newLimitMode(&o)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range timeline {
		p := pending{time: 1e18 + int64(s.second)*1e9, cost: 1}
		got, err := m.decide(p, []byte(s.client))
		if err != nil {
			t.Fatal(err)
		}
		if got != s.ok || (s.left > 0) != s.ok {
			t.Errorf("request %d of %s at %d s: granted %v, want %v", i, s.client, s.second, got, s.ok)
		}
	}
}

func TestCostAboveTheBurstIsNeverGranted(t *testing.T) {
	o := options(t, "1", 2000)
	o.Cost = mustCost(t, "bytes")
	log := line("a", 1, 1000) + line("a", 1, 2001) + line("a", 1, 1000) + line("a", 1, 500)
	l := replay(t, o, input("a.log", log)).Report.Limit
	if l.Granted != 2 || l.Refused != 2 || l.NeverGranted != 1 {
		t.Errorf("%d granted, %d refused, %d never; want 2, 2, 1",
			l.Granted, l.Refused, l.NeverGranted)
	}
}

func TestCostAndKeyFields(t *testing.T) {
	o := options(t, "1/d", 4)
	o.Keys, o.Cost = []string{"tenant", "user"}, mustCost(t, "weight")
	log := `{"ts":1431857103,"tenant":"t","user":"u","weight":1.5}
		{"ts":1431857103,"tenant":"t","user":"u","weight":"2.5"}
		{"ts":1431857103,"tenant":"t","user":"u","weight":0.1}
		{"ts":1431857103,"tenant":"t","weight":4}
		{"ts":1431857103,"user":"t"}`
	rep := replay(t, o, input("a.log", log)).Report
	l := rep.Limit
	if l.Granted != 4 || l.Refused != 1 || rep.Keys != 3 || rep.CostStandIns != 1 {
		t.Errorf("%d granted, %d refused, %d keys, %d stand-ins; want 4, 1, 3, 1",
			l.Granted, l.Refused, rep.Keys, rep.CostStandIns)
	}
	if want := map[string]uint64{"tenant": 1, "user": 1}; !reflect.DeepEqual(rep.Missing, want) {
		t.Errorf("missing %v, want %v", rep.Missing, want)
	}
}

func TestMaxKeysBoundsTheTable(t *testing.T) {
	var log strings.Builder
	for n := range 100 {
		log.WriteString(line(fmt.Sprintf("client%d", n), 1, 1))
	}
	o := options(t, "1/d", 1)
	o.MaxKeys = 10
	if l := replay(t, o, input("a.log", log.String())).Report.Limit; l.EvictedInDebt != 90 ||
		l.Refused != 0 || l.Forgiven < 89.9 {
		t.Errorf("%+v; want 90 evicted in debt", l)
	}
}
