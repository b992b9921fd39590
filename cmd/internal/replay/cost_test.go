package replay

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

func mustCost(t testing.TB, text string) (c Cost) {
	t.Helper()
	if err := c.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCosts(t *testing.T) {
	for _, tt := range []struct {
		cost    string
		size    int64
		field   string
		want    float64
		standIn bool
	}{
		{"1", 500, "", 1, false},
		{"2.5", 500, "", 2.5, false},
		{"bytes", 500, "", 500, false},
		{"bytes", 0, "", 1, false},
		{"bytes", accesslog.Unknown, "", 1, false},
		{"tokens", 500, "7.5", 7.5, false},
		{"tokens", 500, "", 1, true},
		{"tokens", 500, "many", 1, true},
		{"tokens", 500, "0", 1, true},
		{"tokens", 500, "-3", 1, true},
		{"tokens", 500, "NaN", 1, true},
		{"tokens", 500, "1e999", 1, true},
	} {
		c := mustCost(t, tt.cost)
		rec := &accesslog.Record{Size: tt.size, Fields: [][]byte{[]byte("9"), []byte(tt.field)}}
		if got, standIn := c.tokens(rec); got != tt.want || standIn != tt.standIn {
			t.Errorf("%s of %d bytes, field %q: %v, %v; want %v, %v",
				tt.cost, tt.size, tt.field, got, standIn, tt.want, tt.standIn)
		}
	}
}
