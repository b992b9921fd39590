package replay

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/pagestyle"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/printable"
)

//go:embed page
var pageFiles embed.FS

var (
	pageTemplate = template.Must(template.ParseFS(pageFiles, "page/index.html"))
	pageStyle    = pagestyle.Base + pageFile("style.css")
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
// style and the charts in the page, so a key from a hostile log cannot run or load anything.
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
	Sample   bool
	Light    template.URL    // the charts
	Dark     template.Srcset // the charts for a dark page
	Charts   []string        // in words
	Keys     keyTable
	Curve    *refusalCurve // nil if there is no suggestion
	Text     string
}

// WriteHTML writes a page that needs no other file. It has the charts of WriteSVG, a table of keys,
// the refusals of other bursts for a suggestion, and the report as text. Options.Picture must be
// set.
func (res *Result) WriteHTML(w io.Writer) error {
	p := page{
		Security: pageSecurity, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Sample: res.Report.Sample, Keys: res.keyTable(),
	}
	if s := res.Report.Suggestion; s != nil {
		p.Curve = s.curve
	}
	lightURL, texts, err := res.chartsURL(&light)
	if err != nil {
		return err
	}
	darkURL, _, err := res.chartsURL(&dark)
	if err != nil {
		return err
	}
	p.Light, p.Dark, p.Charts = template.URL(lightURL), template.Srcset(darkURL), texts
	var text strings.Builder
	if err := res.Report.WriteText(&text); err != nil {
		return err
	}
	p.Text = printable.Escape(text.String())
	return pageTemplate.Execute(w, p)
}

// chartsURL returns the charts as the URL of an image, and each in words. No browser runs a script
// in an image.
func (res *Result) chartsURL(th *theme) (url string, texts []string, err error) {
	charts, err := res.charts(th)
	if err != nil {
		return "", nil, err
	}
	for _, c := range charts {
		texts = append(texts, c.text)
	}
	var svg bytes.Buffer
	if err := writeCharts(&svg, th, charts); err != nil {
		return "", nil, err
	}
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg.Bytes()), texts, nil
}
