package replay

import (
	"fmt"
	"strconv"
	"time"
)

// integer is what can be counted.
type integer interface {
	~int | ~int64 | ~uint32 | ~uint64
}

// count writes a number with its digits in groups of three: 1,234,567.
func count[N integer](n N) string {
	s := strconv.FormatUint(uint64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// some writes a number into the format if there is any, and nothing otherwise.
func some[N integer](n N, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, count(n))
}

// several chooses the form of a word that goes with a number.
func several[N integer](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// rounded drops what a person does not ask of a time: of hours the milliseconds, and of
// seconds the nanoseconds.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}

// percent writes a fraction with one decimal, or as much as shows that it is neither
// nothing nor all.
func percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 0.05:
		return "< 0.1 %"
	case p > 99.95 && p < 100:
		return "> 99.9 %"
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

// stamp writes a time to the second.
func stamp(t time.Time) string { return t.Format(time.DateTime) }
