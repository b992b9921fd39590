package replay

import (
	"crypto/sha256"
	_ "embed" // of the files of the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/pagestyle"
	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
)

var (
	//go:embed page/index.html
	pageHTML string
	//go:embed page/style.css
	style string
	//go:embed page/script.js
	script string

	pageBegin, _, _ = strings.Cut(pageHTML, "{{")
	pageTemplate    = template.Must(template.New("page").Parse(pageHTML))
	pageStyle       = pagestyle.Style + style
	pageScript      = pagestyle.Script + script
)

// pageSecurity is the Content-Security-Policy of the page. It allows nothing but the script, the
// style and the icon in the page, so a key from a hostile log cannot run or load anything.
var pageSecurity = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s';"+
	" img-src data:; base-uri 'none'; form-action 'none'", integrity(pageScript), integrity(pageStyle))

func integrity(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

type page struct {
	Security string
	Style    template.CSS
	Script   template.JS
	Log      string
	Answer   []string
	Tables   []table
	Text     string // what the rest of the page does not have
}

// WriteHTML writes a page that needs no other file. It has charts of the requests over time and,
// for a suggestion, of what each burst refuses, each with its table, and the tables of the report.
func (rep *Report) WriteHTML(w io.Writer) error {
	p := page{
		Security: pageSecurity, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Log: rep.logName(), Answer: rep.answer(), Tables: append([]table{
			rep.burstTable(), rep.timeline.table(rep.Suggestion == nil), rep.kindTable(),
			rep.clientTable(topKeys)}, rep.otherTables()...),
	}
	var text strings.Builder
	rep.writeData(&text)
	rep.writeSteps(&text)
	rep.writeNotes(&text)
	p.Text = printable.Escape(text.String())
	return pageTemplate.Execute(w, p)
}
