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

func TestSVG(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Input
		want []string
	}{
		{"sample", sampled(5_000),
			[]string{"granted", "refused", "tokens", "203.0.113.66", "12:00",
				"Requests under a limit of 1/s, burst 5, mean over 4m16s"}},
		{"one request", input("a.log", line("a", 1, 1)), []string{"granted", "10:00:01"}},
		{"markup in a key", input("a.log", strings.Repeat(line("<b>&", 1, 1), 10)),
			[]string{"<b>&"}},
	} {
		var svg bytes.Buffer
		if err := replay(t, options(t, "1", 5), tt.in).WriteSVG(&svg); err != nil {
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
	res, err := Run(t.Context(), options(t, "1", 1), emptySchema, nil)
	if err != nil {
		t.Fatal(err)
	}
	var svg bytes.Buffer
	if err := res.WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	shown := checkXML(t, svg.Bytes())
	if strings.Contains(shown, "-1") || strings.Contains(shown, "−1") {
		t.Errorf("less than nothing in\n%s", shown)
	}
}

// Between the requests of a key its bucket refills.
func TestTokensLeftRefill(t *testing.T) {
	log := strings.Repeat(line("a", 10, 1), 4) + line("b", 14, 1)
	r := replay(t, options(t, "1", 3), input("a.log", log)).replayer
	var got []float64
	for _, p := range r.tokensLeft(r.ranking.most(1)[0]) {
		got = append(got, p.Y)
	}
	want := []float64{0, 0, 1, 1, 2, 2, 3, 3, 3, 3} // two points a second, from 10 to 14
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got, want)
			break
		}
	}
}

func TestCurveIsInStepsBySecond(t *testing.T) {
	line := newTimeline()
	line.add(0, true)
	line.add(maxBins, true) // so that a bin is two seconds wide
	line.add(2, true)
	line.add(3, true)
	line.add(3, false)
	got := fmt.Sprint(line.curve(bin.justGranted)[:6], line.curve(bin.total)[2:4])
	if want := "[{0 0.5} {2 0.5} {2 1} {4 1} {4 0} {6 0}] [{2 1.5} {4 1.5}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
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
