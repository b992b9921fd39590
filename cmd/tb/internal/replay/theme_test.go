package replay

import (
	"image/color"
	"math"
	"slices"
	"testing"
)

// luminance returns the relative luminance of a colour (WCAG 2.2).
func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		s := float64(v) / 0xffff
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// WCAG 2.2 asks for 4.5:1 for text and for 3:1 for graphics.
func TestThemesHaveContrast(t *testing.T) {
	for name, th := range map[string]theme{"light": light, "dark": dark} {
		contrast := func(c color.Color) float64 {
			low, high := luminance(c), luminance(th.page)
			if low > high {
				low, high = high, low
			}
			return (high + 0.05) / (low + 0.05)
		}
		if contrast(th.ink) < 4.5 {
			t.Errorf("%s: text has a contrast of %.1f", name, contrast(th.ink))
		}
		for _, c := range slices.Concat([]color.Color{th.granted, th.refused, th.tokens}, th.shares) {
			if contrast(c) < 3 {
				t.Errorf("%s: %v has a contrast of %.1f", name, c, contrast(c))
			}
		}
	}
	if luminance(light.page) < 0.5 || luminance(dark.page) > 0.1 {
		t.Error("the light page is not light, or the dark page not dark")
	}
}
