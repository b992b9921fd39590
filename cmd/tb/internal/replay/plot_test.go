package replay

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
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
			"Requests under a limit of 1/s, burst 5, in each 4m16s",
			"Requests in the busiest second of each 4m16s",
			"203.0.113.66, worst 1m0s, from 2025-03-10 10:18:05: 239 of 250 requests refused"}},
		{"one request", input("a.log", line("a", 1, 1)), []string{"granted", "10:00:01"}},
		{"markup in a key", input("a.log", strings.Repeat(line("<b>&", 1, 1), 10)),
			[]string{"<b>&, worst 1m0s, from 2015-05-17 10:00:01: 5 of 10 requests refused"}},
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
		checkBackground(t, svg.Bytes())
	}
}

// checkBackground fails unless the first thing drawn is a white page as large as the
// drawing, which keeps it readable on any page that shows it.
func checkBackground(t *testing.T, svg []byte) {
	t.Helper()
	size := regexp.MustCompile(`viewBox="0 0 ([0-9.]+) ([0-9.]+)"`).FindSubmatch(svg)
	path := regexp.MustCompile(`<path d="([^"]*)" style="([^"]*)"`).FindSubmatch(svg)
	if size == nil || path == nil {
		t.Fatalf("no size or no path in %.300s", svg)
	}
	page := fmt.Sprintf("M0,0L%[1]s,0L%[1]s,%[2]sL0,%[2]sZ", size[1], size[2])
	if string(path[1]) != page || string(path[2]) != "fill:#FFFFFF" {
		t.Errorf("first %s (%s) is drawn, want %s in white", path[1], path[2], page)
	}
}

func TestSVGOfNothing(t *testing.T) {
	var svg bytes.Buffer
	if err := drawn(t, options(t, "1", 1)).WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	shown := checkXML(t, svg.Bytes())
	if strings.Contains(shown, "-1") || strings.Contains(shown, "−1") {
		t.Errorf("less than nothing in\n%s", shown)
	}
}

func TestCurveIsInSteps(t *testing.T) {
	line := newTimeline()
	line.add(0, true)
	line.add(maxBins, true) // so that a bin is two seconds wide
	for _, granted := range []bool{true, true, false} {
		line.add(maxBins+2, granted)
	}
	line.add(maxBins+3, true)
	for _, tt := range []struct {
		count func(bin) uint64
		want  string
	}{
		{bin.justGranted, "[{512 1} {514 1} {514 3} {516 3}]"},
		{bin.total, "[{512 1} {514 1} {514 4} {516 4}]"},
		{bin.busiest, "[{512 1} {514 1} {514 3} {516 3}]"},
	} {
		curve := line.curve(tt.count)
		if got := fmt.Sprint(curve[len(curve)-4:]); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestTicksAreFewAndRound(t *testing.T) {
	for _, length := range []float64{1, 9, 60, 3600, 86400, 86400 * 400, 86400 * 365 * 290} {
		ticks := timeTicks{}.Ticks(1431857103, 1431857103+length)
		if len(ticks) > 10 || len(ticks) < 1 && length > 5 {
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

func TestWholeTicks(t *testing.T) {
	for last, want := range map[float64]string{
		1: "0 1", 5: "0 1 2 3 4 5", 7: "0 2 4 6", 20: "0 5 10 15 20", 60: "0 10 20 30 40 50 60",
		2500:    "0 500 1,000 1,500 2,000 2,500",
		1 << 30: "0 200,000,000 400,000,000 600,000,000 800,000,000 1,000,000,000",
	} {
		var labels []string
		for _, tick := range (wholeTicks{}).Ticks(0, last) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("up to %v: %s, want %s", last, got, want)
		}
	}
}
