package accesslog

import (
	"math"
	"strconv"
	"time"
)

// maxYear is the last year that fits into nanoseconds since 1970 in any zone.
const maxYear = 2261

const clfLayout = "02/Jan/2006:15:04:05 -0700"

// isoLayouts are RFC 3339 and its variants: a space instead of the T, a zone without a colon, or
// both as in Ruby. Each also stands for times with a fraction of a second.
var isoLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700",
	"2006-01-02 15:04:05 -0700",
}

// localLayouts have no zone: HAProxy, applications, uWSGI, gin, chi and Flask. Such a time counts
// as UTC.
var localLayouts = []string{
	"02/Jan/2006:15:04:05", "2006-01-02T15:04:05", time.DateTime, time.ANSIC,
	"2006/01/02 - 15:04:05", "2006/01/02 15:04:05", "02/Jan/2006 15:04:05",
}

// longest is more than a time without a zone has: the errors of package time quote their text.
const longest = 40

// timeParser parses times. It keeps the last minute of Common Log Format, because neighbouring
// lines nearly always have the same one.
type timeParser struct {
	last  [len(clfLayout)]byte // the last time of clf, as logged
	start int64                // of its minute, in seconds since 1970
}

// clf parses the time of Common Log Format, "17/May/2015:10:05:03 +0000".
func (p *timeParser) clf(b []byte) (ns int64, ok bool) {
	if len(b) != len(p.last) {
		return 0, false
	}
	second := parseDigits(b[18:20])
	if second >= 0 && second < 60 &&
		string(b[:18]) == string(p.last[:18]) && string(b[20:]) == string(p.last[20:]) {
		return (p.start + second) * int64(time.Second), true
	}
	if ns, ok = parseTime(b, clfLayout); ok {
		p.last, p.start = [len(p.last)]byte(b), ns/int64(time.Second)-second
	}
	return ns, ok
}

// any parses a time in any of the usual notations, or a number since 1970. The position of the
// first separator decides which one it is. It reports whether the time has no zone.
func (p *timeParser) any(b []byte) (ns int64, noZone, ok bool) {
	switch {
	case len(b) > 4 && b[4] == '-':
		ns, ok = parseTime(b, isoLayouts...)
	case len(b) > 2 && b[2] == '/':
		ns, ok = p.clf(b)
	case len(b) > 0 && consistsOf(b[:1], digits):
		ns, ok = epoch(b)
	}
	if !ok && len(b) < longest {
		ns, ok = parseTime(b, localLayouts...)
		return ns, ok, ok
	}
	return ns, false, ok
}

// parseTime parses a time from 1970 on in the first layout that fits.
func parseTime(b []byte, layouts ...string) (ns int64, ok bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, string(b)); err == nil {
			return t.UnixNano(), t.Unix() >= 0 && t.Year() <= maxYear
		}
	}
	return 0, false
}

// epoch parses a number since 1970, such as "1431857103.123" or "1431857103123", to the
// microsecond. Its size decides the unit: seconds below 10¹¹ (the year 5138), milliseconds from
// there (1973), microseconds from 10¹⁴ and nanoseconds from 10¹⁷.
func epoch(b []byte) (ns int64, ok bool) {
	n, err := strconv.ParseFloat(string(b), 64)
	unit := float64(time.Second)
	for limit := 1e11; unit > 1 && n >= limit; limit *= 1000 {
		unit /= 1000
	}
	if n *= unit; err != nil || !(n >= 0 && n < math.MaxInt64) {
		return 0, false
	}
	return int64(math.Round(n/1000)) * 1000, true
}

// parseDigits parses at most 18 decimal digits. No digits are 0. It returns -1 for any other
// text.
func parseDigits(b []byte) int64 {
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
