package replay

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

// checkXML fails if the SVG is not well-formed, and returns its visible texts.
func checkXML(t *testing.T, svg []byte) (shown string) {
	t.Helper()
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return shown
		}
		if err != nil {
			t.Fatalf("SVG is not well-formed: %v", err)
		}
		if data, ok := token.(xml.CharData); ok {
			shown += strings.TrimSpace(string(data)) + "\n"
		}
	}
}

// drawn returns the result of a replay for a picture.
func drawn(t *testing.T, o Options, in ...Input) *Result {
	t.Helper()
	o.Picture = true
	return replay(t, o, in...)
}

func TestSVG(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Input
		want []string
	}{
		{"sample", sampled(5_000), []string{"granted", "refused", "tokens", "12:00",
			"Requests under a limit of 1/s, burst 5, in each 5 minutes",
			"Requests in the busiest second of each 5 minutes",
			"203.0.113.66: 239 of 250 requests refused in the worst minute, from 2025-03-10 10:18:05"}},
		{"one request", input("a.log", line("a", 1, 1)), []string{"granted", "10:00:01"}},
		{"markup in a key", input("a.log", strings.Repeat(named("<b>&", 1), 10)),
			[]string{"<b>&: 5 of 10 requests refused in the worst minute, from 2015-05-17 10:00:01",
				"\nUTC, 2015-05-17\n"}},
		{"two days", input("a.log", strings.Repeat(line("a", 1, 1), 7)+
			strings.Replace(line("a", 1, 1), "17/", "18/", 1)),
			[]string{"\nUTC, 2015\n", "\nUTC, 2015-05-17\n"}},
		{"number beside a circle", input("a.log", strings.Repeat(line("a", 1, 1), 12)),
			[]string{"\n7\n"}},
		{"right to left", input("a.log", strings.Repeat(named("\u05d0\u05d1", 1), 7)),
			[]string{"\u2068\u05d0\u05d1\u2069: 2 of 7 requests refused in the worst minute"}},
	} {
		var svg bytes.Buffer
		if err := drawn(t, options(t, "1", 5), tt.in).WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		shown := checkXML(t, svg.Bytes())
		for _, want := range tt.want {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: no %q in the texts\n%s", tt.name, want, shown)
			}
		}
		for _, part := range []string{`<title>Requests under`, `<desc>Requests under`, `class="page"`} {
			if !strings.Contains(svg.String(), part) {
				t.Errorf("%s: no %s in %.400s", tt.name, part, &svg)
			}
		}
	}
}

func TestSVGOfNothing(t *testing.T) {
	var svg bytes.Buffer
	if err := drawn(t, options(t, "1", 1)).WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	checkXML(t, svg.Bytes())
	if strings.Contains(svg.String(), "NaN") || strings.Contains(svg.String(), ">-") {
		t.Errorf("less than nothing in\n%s", &svg)
	}
}

func TestCurveIsInSteps(t *testing.T) {
	line := newTimeline()
	line.add(0, true)
	line.add(maxBins, true) // so that a bin is five seconds wide
	for _, granted := range []bool{true, true, false} {
		line.add(maxBins+3, granted)
	}
	line.add(maxBins+4, true)
	for _, tt := range []struct {
		count func(bin) uint64
		want  string
	}{
		{bin.justGranted, "[{510 1} {515 1} {515 3} {520 3}]"},
		{bin.total, "[{510 1} {515 1} {515 4} {520 4}]"},
		{bin.busiest, "[{510 1} {515 1} {515 3} {520 3}]"},
	} {
		var c svgchart.Chart
		line.addCurve(&c, svgchart.Layer{}, tt.count)
		curve := c.Layers[0].Points
		if got := fmt.Sprint(curve[len(curve)-4:]); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestTicksAreFewAndRound(t *testing.T) {
	for length := 2.0; length < 86400*365*290; length *= 1.1 {
		ticks := timeTicks(1431857103, 1431857103+length)
		if len(ticks) > 11 || len(ticks) < 1 || len(ticks) < 2 && length > 10 {
			t.Errorf("%v s: %d ticks", length, len(ticks))
		}
		seen := make(map[string]bool)
		for _, tick := range ticks {
			if seen[tick.Label] {
				t.Errorf("%v s: label %q twice", length, tick.Label)
			}
			seen[tick.Label] = true
		}
	}
}

func TestTicksOfTime(t *testing.T) {
	const start = 1431857103 // 2015-05-17 10:05:03
	for length, want := range map[float64]string{
		3:            "10:05:03 10:05:04 10:05:05 10:05:06",
		500:          "10:06 10:07 10:08 10:09 10:10 10:11 10:12 10:13",
		86400:        "12:00 15:00 18:00 21:00 00:00 03:00 06:00 09:00",
		200 * 86400:  "2015-06 2015-07 2015-08 2015-09 2015-10 2015-11 2015-12",
		900 * 86400:  "2015-07 2016-01 2016-07 2017-01 2017-07",
		3650 * 86400: "2016 2018 2020 2022 2024",
	} {
		var labels []string
		for _, tick := range timeTicks(start, start+length) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%v s: %s, want %s", length, got, want)
		}
	}
	for length, want := range map[float64]string{
		3: "UTC, 2015-05-17", 86400: "UTC, 2015", 86400 * 300: "UTC",
	} {
		if got := timeLabel(start, start+length); got != want {
			t.Errorf("%v s: %s, want %s", length, got, want)
		}
	}
}

func TestIntervals(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "second", 5 * time.Second: "5 seconds", time.Minute: "minute",
		90 * time.Second: "90 seconds", 3 * time.Hour: "3 hours", day: "day", 360 * day: "360 days",
		60*time.Second + 1: "1m0s", 1500 * time.Millisecond: "1.5s",
	} {
		if got := interval(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestWholeTicks(t *testing.T) {
	for last, want := range map[float64]string{
		1: "0 1", 5: "0 1 2 3 4 5", 7: "0 2 4 6", 20: "0 5 10 15 20", 60: "0 10 20 30 40 50 60",
		2500:    "0 500 1,000 1,500 2,000 2,500",
		1 << 30: "0 200,000,000 400,000,000 600,000,000 800,000,000 1,000,000,000",
	} {
		var labels []string
		for _, tick := range wholeTicks(last) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("up to %v: %s, want %s", last, got, want)
		}
	}
}
