package replay

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type integer interface {
	~int | ~int64 | ~uint32 | ~uint64
}

// grouped writes a number with its digits in groups of three: 1,234,567.
func grouped[N integer](n N) string {
	s := strconv.FormatUint(uint64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ifAny writes a number into the format, or nothing if the number is 0.
func ifAny[N integer](n N, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, grouped(n))
}

// counted writes a number of things: 1 request, 1,234 requests.
func counted[N integer](n N, thing string) string {
	return grouped(n) + " " + plural(n, thing, thing+"s")
}

// ofAll writes a number of all things and its share.
func ofAll(n, all uint64, thing string) string {
	return fmt.Sprintf("%s of %s (%s)", grouped(n), counted(all, thing), percent(share(n, all)))
}

func plural[N integer](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// zeros matches the end of a duration such as 1h0m0s, which is 1h.
var zeros = regexp.MustCompile(`([hm])(0m)?0s$`)

// durationText writes a duration to the second, or to the day if it has several days.
func durationText(d time.Duration) string {
	if d >= 3*day {
		return grouped(uint64(d/day)) + " days"
	}
	return zeros.ReplaceAllString(d.Round(time.Second).String(), "$1")
}

func percent(fraction float64) string { return fmt.Sprintf("%.1f %%", 100*fraction) }

func dateTime(t time.Time) string { return t.Format(time.DateTime) }

// keyText writes a key on one line. Clients choose the text of a key, so a part that is not
// printable is quoted: it cannot move the cursor of the terminal.
func keyText(parts []string) string {
	const longest = 80
	var texts []string
	for _, p := range parts {
		if p == "" {
			p = "-"
		}
		if quoted := strconv.Quote(p); quoted != `"`+p+`"` {
			p = quoted
		}
		texts = append(texts, shorten(p, longest))
	}
	return strings.Join(texts, " ")
}

func shorten(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}
