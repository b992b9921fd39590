package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The order of the lines does not matter, whatever decides or draws.
func TestRequestsAreDecidedInTheOrderOfTheirTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type written struct {
		end  int
		line string
	}
	var sorted strings.Builder
	var lines []written
	for second := range 3000 {
		l := line(fmt.Sprintf("10.0.0.%d", rng.IntN(20)), second, 1+rng.IntN(3000))
		sorted.WriteString(l)
		lines = append(lines, written{second + rng.IntN(200), l})
	}
	slices.SortStableFunc(lines, func(a, b written) int { return a.end - b.end })
	var unsorted strings.Builder
	for _, l := range lines {
		unsorted.WriteString(l.line)
	}
	policy, err := policyOptions(t, `{"name": "a", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 0.04, "burst": 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"limit": options(t, "0.04", 2), "suggestion": suggestOptions(t, "1%", ""), "policy": policy,
	} {
		if name == "limit" {
			o.Algorithms = []string{"fixed-window", "gcra"}
		}
		print := func(log string) string {
			res := replay(t, o, input("a.log", log))
			encoded, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			b := strings.Builder{}
			b.Write(encoded)
			if err := res.WriteHTML(&b); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if got, want := print(unsorted.String()), print(sorted.String()); got != want {
			t.Errorf("%s: out of order\n%.1500s\nin order\n%.1500s", name, got, want)
		}
	}
}

// passed returns the times that a queue of some length passes on, and the late ones that it does
// not take. The paths are the numbers of the lines, which keep their order if their times are the
// same.
func passed(most int, times []int64) (all, late []int64) {
	q := newQueue(most)
	var last pending
	decide := func(p pending) error {
		if p.time == last.time && p.path < last.path {
			return fmt.Errorf("line %v is after line %v of the same time", p.path, last.path)
		}
		last = p
		all = append(all, p.time)
		return nil
	}
	for i, t := range times {
		if !q.takes(t) {
			late = append(late, t)
		} else if q.add(pending{time: t, path: uint32(i)}) {
			if err := q.pass((q.len()+1)/2, decide); err != nil {
				panic(err)
			}
		}
	}
	if err := q.pass(q.len(), decide); err != nil {
		panic(err)
	}
	return all, late
}

// Requests that are late by less than half of a queue come in order.
func TestQueueSortsWithinItsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, most := range []int{1, 2, 7, 64, 1000} {
		var times []int64
		for i := range 5000 {
			times = append(times, int64(i/3))
		}
		for i := 0; i+most/2 <= len(times) && most > 2; i += most / 2 {
			part := times[i:][:most/2]
			rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		}
		want := slices.Sorted(slices.Values(times))
		if got, late := passed(most, times); !slices.Equal(got, want) || len(late) > 0 {
			t.Errorf("a queue of %d: %d are late, and not all are in order", most, len(late))
		}
	}
}

func TestQueueDoesNotTakeWhatIsTooLate(t *testing.T) {
	times := []int64{5, 6, 7, 8, 1, 9, 8, 10, 11, 2}
	all, late := passed(4, times)
	if !slices.IsSorted(all) || len(all) != len(times)-2 || !slices.Equal(late, []int64{1, 2}) {
		t.Errorf("%d passed on, %d are late; want 1 and 2", all, late)
	}
}

// Long parts do not make the queue longer than its bound in bytes.
func TestQueueBoundsItsBytes(t *testing.T) {
	q := newQueue(queueRequests)
	parts, full := strings.Repeat("x", 1<<20), 0
	for i := range 100 {
		if q.add(pending{time: int64(i), parts: parts}) {
			if q.len() != queueBytes/len(parts) {
				t.Fatalf("%d of 1 MiB", q.len())
			}
			_ = q.pass(q.len()/2, func(pending) error { return nil })
			full++
		}
	}
	if full == 0 || q.bytes != q.len()*len(parts) {
		t.Errorf("full %d times, %d bytes in %d requests", full, q.bytes, q.len())
	}
}
