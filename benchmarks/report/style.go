package main

import (
	"fmt"
	"strings"
)

// The drawings have no background. Their colours have a contrast of at least 3 to 1 with
// white and with the near-black of dark pages. The colour of text has 4 to 1.
const (
	ink       = "#787878"
	vermilion = "#d55e00"
	blue      = "#1f7dc4"
	green     = "#00966c"
	purple    = "#b8689a"
	ochre     = "#a07a1a"
)

// look is the appearance of a line in all charts. Colour-blind readers can distinguish the
// colours (after Okabe and Ito); the dashes and the dots differ as well.
type look struct {
	color, dash string
	width       float64
	hollow      bool // the dots
}

const (
	thin, thick           = 1.2, 3.0
	solid, dashed, dotted = "none", "6 4", "1.5 3"
	filled, hollow        = false, true
)

var looks = map[string]look{
	"cas":           {vermilion, solid, thick, filled},
	"floor":         {ink, dashed, thin, filled},
	"mutex":         {blue, solid, thin, filled},
	"xtime-syncmap": {green, solid, thin, filled},
	"xtime-lru":     {green, dashed, thin, hollow},
	"throttled":     {purple, solid, thin, filled},
	"sethvargo":     {purple, dashed, thin, hollow},
	"ulule":         {ochre, solid, thin, filled},
	"juju-syncmap":  {ochre, dashed, thin, hollow},
	"uber-syncmap":  {blue, dashed, thin, hollow},
	"httprate":      {blue, dotted, thin, filled},

	"tb":             {vermilion, solid, thick, filled},
	"tb-plain":       {vermilion, dotted, thin, filled},
	"tb-shared":      {vermilion, dashed, thin, hollow},
	"tb-lease":       {vermilion, dashed, thin, filled},
	"lua-evalsha":    {blue, solid, thin, filled},
	"multi-cmd":      {purple, solid, thin, hollow},
	"watch":          {ochre, solid, thin, filled},
	"redis_rate":     {green, solid, thin, filled},
	"rueidislimiter": {green, dashed, thin, hollow},
}

// style returns the style of lines, whose classes are the names of their looks.
func style(names []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".chart { color: %s; }\n", ink)
	for _, name := range names {
		l := looks[name]
		fmt.Fprintf(&b, ".chart .%[1]s { color: %[2]s; }\n"+
			".chart .line.%[1]s { stroke-width: %[3]v; stroke-dasharray: %[4]s; }\n",
			name, l.color, l.width, l.dash)
		if l.hollow {
			fmt.Fprintf(&b, ".chart .dot.%s { fill: none; stroke: currentColor; }\n", name)
		}
	}
	return b.String()
}
