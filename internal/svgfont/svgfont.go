// Package svgfont completes the fonts of SVGs that gonum/plot has drawn.
package svgfont

import "bytes"

// AddFallbacks adds fonts for systems without Liberation Sans, which has the widths of the layout.
// The other fonts have the same widths.
func AddFallbacks(svg []byte) []byte {
	const font = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg, []byte(font), []byte(font+",Arial,Helvetica,sans-serif"))
}
