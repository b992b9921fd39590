package replay

import (
	"strings"
	"testing"
	"time"
)

func mustRate(t testing.TB, text string) Rate {
	t.Helper()
	var r Rate
	if err := r.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		text   string
		tokens int64
		per    time.Duration
		shown  string
	}{
		{"5", 5, time.Second, "5/s"},
		{"5/s", 5, time.Second, "5/s"},
		{"2.5", 5, 2 * time.Second, "2.5/s"},
		{"2.50/s", 5, 2 * time.Second, "2.50/s"},
		{"0.1", 1, 10 * time.Second, "0.1/s"},
		{"300/m", 300, time.Minute, "300/m"},
		{"100/h", 100, time.Hour, "100/h"},
		{"1/d", 1, 24 * time.Hour, "1/d"},
		{"1/24h", 1, 24 * time.Hour, "1/24h"},
		{"3/1h30m", 3, 90 * time.Minute, "3/1h30m"},
		{"1/100ms", 1, 100 * time.Millisecond, "1/100ms"},
		{"1000000000", 1e9, time.Second, "1000000000/s"},
		{"0.00001/d", 1, 100_000 * 24 * time.Hour, "0.00001/d"},
	} {
		var r Rate
		err := r.UnmarshalText([]byte(tt.text))
		if err != nil || r.Tokens != tt.tokens || r.Per != tt.per || r.String() != tt.shown {
			t.Errorf("%q is {%d %v} %s, %v; want {%d %v} %s",
				tt.text, r.Tokens, r.Per, r, err, tt.tokens, tt.per, tt.shown)
		}
	}
}

func TestFlagErrorsSayWhatIsExpected(t *testing.T) {
	type parser interface{ UnmarshalText([]byte) error }
	for _, tt := range []struct {
		flag   parser
		want   string
		inputs []string
	}{
		{new(Rate), "300/m", []string{"", "0", "-1", "x", "5/", "5/x", "5/0s", "/s", "1e3",
			"NaN", "1.2.3", "5/-1h", "1000000001", "1/300y", "0.000001/d",
			"99999999999999999999", "0.0/s", "."}},
		{new(Share), "0% to 50%", []string{"", "1", "%", "-1%", "50.1%", "1e-3%", "0.1 %", "NaN%"}},
	} {
		for _, input := range tt.inputs {
			err := tt.flag.UnmarshalText([]byte(input))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%T %q: error %v, want one with %q", tt.flag, input, err, tt.want)
			}
		}
	}
}
