package replay

import "image/color"

// theme has the colours of a picture. Each contrasts with the page by at least 3:1, except the
// grid.
type theme struct {
	page, ink, grid          color.Color
	granted, refused, tokens color.Color
	shares                   []color.Color // the least share first; the lines also differ by dashes
}

// Most colours are from the palettes of Okabe and Ito and of Tol, which colour-blind readers can
// distinguish.
var (
	light = theme{
		page: color.White, ink: color.Black, grid: color.Gray{Y: 230},
		granted: rgb(0x0072b2), refused: rgb(0xd55e00), tokens: rgb(0x0072b2),
		shares: []color.Color{
			color.Black, rgb(0x0072b2), rgb(0x009e73), rgb(0xcc79a7), rgb(0xd55e00), rgb(0x882255),
		},
	}
	dark = theme{
		page: rgb(0x1a222b), ink: rgb(0xe4eaf0), grid: rgb(0x3a4754),
		granted: rgb(0x56b4e9), refused: rgb(0xff9d63), tokens: rgb(0x56b4e9),
		shares: []color.Color{
			color.White, rgb(0x56b4e9), rgb(0x2cc29b), rgb(0xcc79a7), rgb(0xff9d63), rgb(0xf0e442),
		},
	}
)

func rgb(c uint32) color.Color {
	return color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}
}
