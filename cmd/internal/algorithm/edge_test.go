package algorithm

import "testing"

// The burst shows the edge: the fixed window grants twice its count, and the others the count
// once.
func TestBurstAtEdge(t *testing.T) {
	instants, edge := BurstAtEdge()
	for name, want := range map[string][2]int{ // before the edge and after it
		"token-bucket": {10, 0}, "fixed-window": {10, 10}, "sliding-log": {10, 0},
		"sliding-window": {10, 0}, "leaky-bucket": {10, 0}, "gcra": {10, 0},
	} {
		results, err := Play(name, instants)
		if err != nil {
			t.Fatal(err)
		}
		var got [2]int
		for i, result := range results {
			switch {
			case !result.Granted:
			case instants[i] < edge:
				got[0]++
			default:
				got[1]++
			}
		}
		if got != want {
			t.Errorf("%s: %v granted, want %v", name, got, want)
		}
	}
	if _, err := Play("window", instants); err == nil {
		t.Error("no error for an unknown name")
	}
}
