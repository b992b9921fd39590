package suggest

import "testing"

func TestPeakSecond(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds []int64
		want    uint32
	}{
		{"one", []int64{1000}, 1},
		{"the first second of 1970", []int64{0, 0}, 2},
		{"in order", []int64{1000, 1000, 1001, 1001, 1001, 1002}, 3},
		{"a late one counts in no second", []int64{1000, 1000, 1001, 1000, 1000, 1001}, 2},
		{"a long gap", []int64{1000, 1000, 1_000_000, 1_000_000}, 2},
	} {
		var p Peak
		for _, s := range tt.seconds {
			p.Add(s)
		}
		if p.Most != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, p.Most, tt.want)
		}
	}
}
