package samplelog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"testing"
)

// The documents quote results of the sample.
func TestSampleIsTheSameEveryTime(t *testing.T) {
	const want = "f6118c9d3587ac7b17b61e8af5fc3c514247715c982772aab41b8fb8fcf01ec7"
	log, _ := io.ReadAll(New(100_000))
	if got := fmt.Sprintf("%x", sha256.Sum256(log)); got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
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

// The sample resembles a real log, of a day from its start on.
func TestSampleIsLikeARealLog(t *testing.T) {
	const n = 50_000
	log, _ := io.ReadAll(New(n))
	lines := regexp.MustCompile(`(?m)^(\S+) - - \[(.{20}) \+0000\] "(GET|POST) \S+ HTTP/1.1"`+
		` \d{3} (\d+|-) "-" ".+"$`).FindAllSubmatch(log, -1)
	byIP := make(map[string]int)
	var ipv6, late, night, noSize float64
	last := ""
	for _, m := range lines {
		ip, clock := string(m[1]), string(m[2])
		byIP[ip]++
		for _, c := range []struct {
			is    bool
			count *float64
		}{
			{bytes.IndexByte(m[1], ':') >= 0, &ipv6}, {clock < last, &late},
			{clock < "10/Mar/2025:06", &night}, {string(m[4]) == "-", &noSize},
		} {
			if c.is {
				*c.count += 1. / n
			}
		}
		last = clock
	}
	for _, tt := range []struct {
		what         string
		got, min, to float64
	}{
		{"lines", float64(len(lines)), n, n},
		{"clients", float64(len(byIP)), 2_000, 6_000},
		{"requests of the attacker", float64(byIP[attacker.addr.String()]), n / 20, n / 20},
		{"share of IPv6", ipv6, 0.1, 0.5},
		{"share out of order", late, 0.005, 0.2},
		{"share without size", noSize, 0.01, 0.3},
		{"share in the first six hours", night, 0.02, 0.15},
	} {
		if tt.got < tt.min || tt.got > tt.to {
			t.Errorf("%s: %v, want %v to %v", tt.what, tt.got, tt.min, tt.to)
		}
	}
	if last < "10/Mar/2025:22" {
		t.Errorf("the last line is of %s", last)
	}
}
