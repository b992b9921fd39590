// Package pagestyle has what the styles of all pages share: the colours of light and dark, and the
// looks of sections and tables.
package pagestyle

import _ "embed"

// Base is the style sheet of all pages. A page's own style sheet follows it.
//
//go:embed base.css
var Base string
