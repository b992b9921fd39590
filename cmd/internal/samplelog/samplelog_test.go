package samplelog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

func TestSampleIsDeterministic(t *testing.T) {
	first, err := io.ReadAll(New(5_000))
	if err != nil {
		t.Fatal(err)
	}
	second, _ := io.ReadAll(iotest.OneByteReader(New(5_000)))
	if !bytes.Equal(first, second) {
		t.Error("two samples differ")
	}
}

func TestSampleHasAsManyLinesAsAsked(t *testing.T) {
	for _, n := range []int{1, 2, 19, 1_000, 30_000} {
		log, err := io.ReadAll(New(n))
		if got := bytes.Count(log, []byte{'\n'}); got != n || err != nil {
			t.Errorf("%d lines, %v; want %d", got, err, n)
		}
	}
}

func TestShortestSampleCoversADay(t *testing.T) {
	log, err := io.ReadAll(New(MinLines))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(log, []byte{'\n'}), []byte{'\n'})
	if first := lines[0]; !bytes.Contains(first, []byte("[10/Mar/2025:0")) {
		t.Errorf("the first line is %s", first)
	}
	if last := lines[len(lines)-1]; !bytes.Contains(last, []byte("[10/Mar/2025:2")) {
		t.Errorf("the last line is %s, want one of that evening", last)
	}
}

// The sample resembles a real log.
func TestSampleIsLikeARealLog(t *testing.T) {
	const lines = 50_000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := accesslog.NewReader(ctx, "sample", New(lines), accesslog.Schema{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		rec                   accesslog.Record
		ipv6, late, night     int
		noSize, last, longest int64
		byIP                  = make(map[string]int)
		start                 = logStart.UnixNano()
	)
	for {
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		byIP[string(rec.Peer)]++
		if bytes.IndexByte(rec.Peer, ':') >= 0 {
			ipv6++
		}
		if rec.Time < last {
			late++
		}
		if rec.Size == accesslog.Unknown {
			noSize++
		}
		last = rec.Time
		longest = max(longest, rec.Time-start)
		if rec.Time-start < 6*3600e9 {
			night++
		}
	}
	single := 0
	for _, n := range byIP {
		if n == 1 {
			single++
		}
	}
	hours := float64(longest) / 3600e9
	for _, tt := range []struct {
		what    string
		got     float64
		min, to float64
	}{
		{"hours", hours, 22, 27},
		{"clients", float64(len(byIP)), 2_000, 6_000},
		{"requests of the attacker", float64(byIP[attacker.addr.String()]), lines / 20, lines / 20},
		{"clients with a single request", float64(single), lines / 25, lines / 10},
		{"share of IPv6", float64(ipv6) / lines, 0.1, 0.5},
		{"share out of order", float64(late) / lines, 0.005, 0.2},
		{"share without size", float64(noSize) / lines, 0.01, 0.3},
		{"share in the first six hours", float64(night) / lines, 0.02, 0.15},
	} {
		if tt.got < tt.min || tt.got > tt.to {
			t.Errorf("%s: %v, want %v to %v", tt.what, tt.got, tt.min, tt.to)
		}
	}
	if r.Format() != accesslog.Combined {
		t.Errorf("format %s, want combined", r.Format())
	}
}
