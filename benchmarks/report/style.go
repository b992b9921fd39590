package main

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The drawings have no background. Their colours have a contrast of at least 3 to 1 with
// white and with the near-black of dark pages. The colour of text has 4 to 1.
var (
	ink  = color.RGBA{R: 0x78, G: 0x78, B: 0x78, A: 255}
	rule = color.NRGBA{R: 0x80, G: 0x80, B: 0x80, A: 80} // the grid

	vermilion = color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 255}
	blue      = color.RGBA{R: 0x1f, G: 0x7d, B: 0xc4, A: 255}
	green     = color.RGBA{R: 0x00, G: 0x96, B: 0x6c, A: 255}
	purple    = color.RGBA{R: 0xb8, G: 0x68, B: 0x9a, A: 255}
	ochre     = color.RGBA{R: 0xa0, G: 0x7a, B: 0x1a, A: 255}
)

// look is the appearance of a contender in all charts. Colour-blind readers can distinguish
// the colours (after Okabe and Ito); the shapes differ as well.
type look struct {
	color color.Color
	glyph draw.GlyphDrawer
	width vg.Length
	dash  []vg.Length
}

var (
	thin, thick = vg.Points(1), vg.Points(2.4)
	dashed      = []vg.Length{vg.Points(4), vg.Points(3)}
	dotted      = []vg.Length{vg.Points(1), vg.Points(2.5)}
)

var looks = map[string]look{
	"cas":           {vermilion, draw.CircleGlyph{}, thick, nil},
	"floor":         {ink, draw.PlusGlyph{}, thin, dashed},
	"mutex":         {blue, draw.SquareGlyph{}, thin, nil},
	"xtime-syncmap": {green, draw.PyramidGlyph{}, thin, nil},
	"xtime-lru":     {green, draw.TriangleGlyph{}, thin, dashed},
	"throttled":     {purple, draw.BoxGlyph{}, thin, nil},
	"sethvargo":     {purple, draw.CrossGlyph{}, thin, dashed},
	"ulule":         {ochre, draw.RingGlyph{}, thin, nil},
	"juju-syncmap":  {ochre, draw.CrossGlyph{}, thin, dashed},
	"uber-syncmap":  {blue, draw.RingGlyph{}, thin, dashed},
	"httprate":      {blue, draw.CrossGlyph{}, thin, dotted},

	"tb":             {vermilion, draw.TriangleGlyph{}, thick, nil},
	"tb-plain":       {vermilion, draw.CrossGlyph{}, thin, dotted},
	"tb-shared":      {vermilion, draw.RingGlyph{}, thin, dashed},
	"tb-lease":       {vermilion, draw.SquareGlyph{}, thin, dashed},
	"lua-evalsha":    {blue, draw.CircleGlyph{}, thin, nil},
	"multi-cmd":      {purple, draw.RingGlyph{}, thin, nil},
	"watch":          {ochre, draw.SquareGlyph{}, thin, nil},
	"redis_rate":     {green, draw.CircleGlyph{}, thin, nil},
	"rueidislimiter": {green, draw.CrossGlyph{}, thin, dashed},
}
