package accesslog

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Both notations are checked against the time package, over all years and zones, with
// the cached date used and replaced in turn.
func TestTimesAgreeWithTheTimePackage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p timeParser
	at := time.Now()
	for range 20_000 {
		if rng.IntN(3) > 0 {
			at = at.Add(time.Duration(rng.IntN(100_000)) * time.Millisecond)
		} else {
			zone := time.FixedZone("", (rng.IntN(26*60)-12*60)*60)
			at = time.Unix(86400+rng.Int64N(9_200_000_000), rng.Int64N(1e9)).In(zone)
		}
		clf := at.Format("02/Jan/2006:15:04:05 -0700")
		if ns, ok := p.clf([]byte(clf)); !ok || ns != at.Unix()*1e9 {
			t.Fatalf("%s is %d, %v; want %d", clf, ns, ok, at.Unix()*1e9)
		}
		rfc := at.Format(time.RFC3339Nano)
		if ns, ok := p.any([]byte(rfc)); !ok || ns != at.UnixNano() {
			t.Fatalf("%s is %d, %v; want %d", rfc, ns, ok, at.UnixNano())
		}
	}
}

func TestNoTimes(t *testing.T) {
	var p timeParser
	if _, ok := p.clf([]byte("17/May/2015:10:05:03 +0000")); !ok {
		t.Fatal("no time, of which the parser keeps the minute")
	}
	for _, s := range []string{
		"", "17/May/2015:10:05:03", "31/Feb/2015:10:05:03 +0000",
		"00/May/2015:10:05:03 +0000", "17/May/2015:24:05:03 +0000", "17/May/2015:10:60:03 +0000",
		"17/May/2015:10:05:61 +0000", "17/May/2015:10:05:0x +0000", "17/May/2015:10:05:03 00000",
		"17/May/1969:10:05:03 +0000", "17/May/2262:10:05:03 +0000", "01/Jan/1970:00:00:00 +0100",
		"17-May-2015:10:05:03 +0000", "1x/May/2015:10:05:03 +0000", "17/May/2015 10:05:03 +0000",
	} {
		if ns, ok := p.clf([]byte(s)); ok {
			t.Errorf("CLF %q is %d, want no time", s, ns)
		}
	}
	for _, s := range []string{
		"", "2015-05-17", "2015-05-17T10:05:03", "2015-05-17x10:05:03Z", "2015/05/17T10:05:03Z",
		"2015-02-29T10:05:03Z", "2015-05-17T10:05:03.Q", "2015-05-17T10:05:03+1",
		"1969-12-31T23:59:59Z",
		"2015-05-17T10:05:03.123", "2015-05-17T10:05:03+25:00", "2015-05-17T10:05:03+02:0",
	} {
		if ns, ok := parseTime([]byte(s), isoLayouts...); ok {
			t.Errorf("RFC 3339 %q is %d, want no time", s, ns)
		}
	}
}

func TestEpochUnits(t *testing.T) {
	for _, tt := range []struct {
		text string
		ns   int64
		ok   bool
	}{
		{"0", 0, true},
		{"1431857103", 1431857103_000000000, true},
		{"1431857103.5", 1431857103_500000000, true},
		{"1431857103.123456789123", 1431857103_123456789, true},
		{"1431857103123", 1431857103_123000000, true},
		{"1431857103123.25", 1431857103_123250000, true},
		{"1431857103123456", 1431857103_123456000, true},
		{"1431857103123456789", 1431857103_123456789, true},
		{"1.431857103e+09", 1431857103_000000000, true},
		{"1.4318571035e+09", 1431857103_500000000, true},
		{"9223372035", 9223372035_000000000, true},
		{"9223372036", 0, false}, // beyond an int64 of nanoseconds
		{"99999999999", 0, false},
		{"9223372036855", 0, false},
		{"99999999999999999999", 0, false},
		{"", 0, false}, {".5", 0, false}, {"-1", 0, false}, {"1.2.3", 0, false}, {"1x", 0, false},
		{"1e400", 0, false}, {"1431857103.5x", 0, false},
	} {
		if ns, ok := epoch([]byte(tt.text)); ok != tt.ok || ok && ns != tt.ns {
			t.Errorf("epoch(%q) = %d, %v; want %d, %v", tt.text, ns, ok, tt.ns, tt.ok)
		}
	}
}
