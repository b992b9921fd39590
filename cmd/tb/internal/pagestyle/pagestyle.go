// Package pagestyle has what the styles of all pages share: the colours of light and dark, and the
// looks of sections and tables.
package pagestyle

import _ "embed"

// Base is a style sheet. That of a page follows it.
//
//go:embed base.css
var Base string
