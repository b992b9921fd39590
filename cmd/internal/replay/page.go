package replay

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/pagestyle"
	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

//go:embed page
var pageFiles embed.FS

var (
	pageTemplate = template.Must(template.ParseFS(pageFiles, "page/index.html"))
	pageStyle    = pagestyle.Style + svgchart.Style + chartColors + pageFile("style.css")
	pageScript   = pageFile("script.js")
)

func pageFile(name string) string {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // the directory is embedded
	}
	return string(text)
}

// pageSecurity is the Content-Security-Policy of the page. It allows nothing but the script, the
// style and the icon in the page, so a key from a hostile log cannot run or load anything.
var pageSecurity = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s';"+
	" img-src data:; base-uri 'none'; form-action 'none'", integrity(pageScript), integrity(pageStyle))

func integrity(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// page has the data of the template.
type page struct {
	Security string
	Style    template.CSS
	Script   template.JS
	Log      string
	Sample   bool
	Headline string
	Charts   []figure
	Buckets  []figure // of the first keys
	Keys     keyTable
	Curve    *refusalCurve // nil if there is no suggestion
	Text     string
}

// figure is a chart of the page.
type figure struct {
	Title string
	SVG   template.HTML
}

func figures(charts []svgchart.Chart) (all []figure) {
	for _, c := range charts {
		all = append(all, figure{c.Title, template.HTML(c.SVG())})
	}
	return all
}

// WriteHTML writes a page that needs no other file. It has the charts of WriteSVG, a table of keys,
// the refusals of other bursts for a suggestion, and the report as text. Options.Picture must be
// set.
func (res *Result) WriteHTML(w io.Writer) error {
	rep := &res.Report
	p := page{
		Security: pageSecurity, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Log: rep.logName(), Sample: rep.Sample, Headline: rep.headline(), Keys: res.keyTable(),
		Charts: figures(res.charts()), Buckets: figures(res.bucketCharts(shownKeys)),
	}
	if s := rep.Suggestion; s != nil {
		p.Curve = s.curve
	}
	var text strings.Builder
	if err := rep.WriteText(&text); err != nil {
		return err
	}
	p.Text = printable.Escape(text.String())
	return pageTemplate.Execute(w, p)
}

// logName returns the name of the log, or of the first of several.
func (rep *Report) logName() string {
	if len(rep.Files) == 0 {
		return "nothing"
	}
	name := keyText([]string{rep.Files[0].Name})
	if n := len(rep.Files) - 1; n > 0 {
		name += fmt.Sprintf(" and %s more", grouped(n))
	}
	return name
}

// headline returns the outcome in a sentence.
func (rep *Report) headline() string {
	if s := rep.Suggestion; s != nil {
		if s.Limit == nil {
			return "No burst is enough."
		}
		return s.Limit.headline(s)
	}
	o := &rep.Limits[0]
	return fmt.Sprintf("%s, burst %s: refuses %s of %s requests (%s), and %s of %s %s at least once.",
		o.Rate, grouped(o.Burst), grouped(o.Refused), grouped(rep.Requests), percent(o.RefusedShare),
		grouped(o.KeysRefused), grouped(rep.Keys), plural(rep.Keys, "key", "keys"))
}
