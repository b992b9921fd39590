// Package pagestyle has what all pages share: the colours of light and dark, the looks of sections
// and tables, and the charts.
//
// The directory uplot has the files of uPlot 1.6.32 (github.com/leeoniya/uPlot), as they are in the
// npm registry.
package pagestyle

import _ "embed"

var (
	//go:embed base.css
	base string
	//go:embed charts.js
	charts string
	//go:embed uplot/uPlot.min.css
	uPlotStyle string
	//go:embed uplot/uPlot.iife.min.js
	uPlot string
	//go:embed uplot/LICENSE
	licence string
)

// Style is the style sheet of all pages. A page's own style sheet follows it.
var Style = uPlotStyle + "\n" + base

// Script defines the function drawChart, which draws with uPlot. A page's own script follows it. It
// has the licence of uPlot, because a page is a copy of uPlot.
var Script = "/*\n" + licence + "\n*/\n" + uPlot + charts
