package replay

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// luminance returns the relative luminance of a colour in six hexadecimal digits (WCAG 2.2).
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(color, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(v uint64) float64 {
		s := float64(v&0xff) / 0xff
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

var colorRule = regexp.MustCompile(`(?m)^ *(.chart.*) \{ (?:color|fill): #([0-9a-f]{6});`)

// WCAG 2.2 asks for 4.5:1 for text and for 3:1 for graphics.
func TestChartsHaveContrast(t *testing.T) {
	light, dark, _ := strings.Cut(chartColors, "@media (prefers-color-scheme: dark)")
	for name, style := range map[string]string{"light": light, "dark": dark} {
		colors := make(map[string]float64)
		for _, m := range colorRule.FindAllStringSubmatch(style, -1) {
			for class := range strings.SplitSeq(m[1], ", ") {
				colors[class] = luminance(t, m[2])
			}
		}
		page := colors[".chart .page"]
		if (page > 0.5) != (name == "light") {
			t.Errorf("%s: the page has a luminance of %.2f", name, page)
		}
		contrast := func(class string, least float64) {
			l, ok := colors[class]
			if c := (max(l, page) + 0.05) / (min(l, page) + 0.05); !ok || c < least {
				t.Errorf("%s: %s has a contrast of %.1f, want %v", name, class, c, least)
			}
		}
		contrast(".chart", 4.5)
		for _, class := range []string{"granted", "refused", "tokens", "suggested"} {
			contrast(".chart ."+class, 3)
		}
		for i := range 6 {
			contrast(fmt.Sprintf(".chart .share-%d", i), 3)
		}
	}
}
