package accesslog

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The fast path of Common Log Format is checked against the time package, over all years and
// zones, with the cached minute used and replaced in turn.
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
		if ns, _, ok := p.any([]byte(at.Format(clfLayout))); !ok || ns != at.Unix()*1e9 {
			t.Fatalf("%s is %d, %v; want %d", at, ns, ok, at.Unix()*1e9)
		}
		wall := at.Format(clfLayout)[:20]
		utc, _ := p.clf([]byte(wall + " +0000"))
		if east, ok := p.clf([]byte(wall + " +0100")); !ok || utc-east != int64(time.Hour) {
			t.Fatalf("%s is %d in UTC, and %d an hour east", wall, utc, east)
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999-0700"} {
			if ns, _, ok := p.any([]byte(at.Format(layout))); !ok || ns != at.UnixNano() {
				t.Fatalf("%s is %d, %v; want %d", at.Format(layout), ns, ok, at.UnixNano())
			}
		}
	}
}

func TestNoTimes(t *testing.T) {
	var p timeParser
	if _, ok := p.clf([]byte("17/May/2015:10:05:03 +0000")); !ok {
		t.Fatal("no time, of which the parser keeps the minute")
	}
	for _, s := range []string{
		"", "31/Feb/2015:10:05:03 +0000", "17/May/2015:10:05:61 +0000",
		"17/May/2015:10:05:0x +0000", "17/May/1969:10:05:03 +0000", "17/May/2262:10:05:03 +0000",
		"01/Jan/1970:00:00:00 +0100", "17-May-2015:10:05:03 +0000",
		"2015-05-17", "2015/05/17T10:05:03Z", "2015-02-29T10:05:03Z",
		"2015-05-17T10:05:03.Q", "2015-05-17T10:05:03+25:00", "1969-12-31T23:59:59Z",
		".5", "-1", "1.2.3", "1x", "1e400", "1431857103.5x", "99999999999", "9223372037",
	} {
		if ns, _, ok := p.any([]byte(s)); ok {
			t.Errorf("%q is %d, want no time", s, ns)
		}
	}
}

func TestTimesWithoutAZone(t *testing.T) {
	var p timeParser
	for _, s := range []string{
		"17/May/2015:10:05:03", "2015-05-17T10:05:03", "2015-05-17 10:05:03.000",
		"Sun May 17 10:05:03 2015", "2015/05/17 - 10:05:03", "2015/05/17 10:05:03",
	} {
		if ns, noZone, ok := p.any([]byte(s)); !ok || !noZone || ns != 1431857103e9 {
			t.Errorf("%q is %d, without a zone: %v, %v", s, ns, noZone, ok)
		}
	}
}

func TestEpochUnits(t *testing.T) {
	for text, ns := range map[string]int64{
		"0": 0, "1431857103": 1431857103_000000000, "1431857103.5": 1431857103_500000000,
		"1431857103.123456": 1431857103_123456000, "1431857103123": 1431857103_123000000,
		"1431857103123.25": 1431857103_123250000, "1431857103123456": 1431857103_123456000,
		"1431857103123456789": 1431857103_123457000, "1.4318571035e+09": 1431857103_500000000,
		"9223372035": 9223372035_000000000,
	} {
		if got, ok := epoch([]byte(text)); !ok || got != ns {
			t.Errorf("epoch(%q) = %d, %v; want %d", text, got, ok, ns)
		}
	}
}
