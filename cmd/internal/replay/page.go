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
)

//go:embed page
var pageFiles embed.FS

var (
	pageTemplate = template.Must(template.ParseFS(pageFiles, "page/index.html"))
	pageStyle    = pagestyle.Style + pageFile("style.css")
	pageScript   = pagestyle.Script + pageFile("script.js")
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
	Headline string
	Next     string        // what to do about an empty result
	Curve    *refusalCurve // nil if there is no suggestion
	Use      []copyable
	Time     timeTable
	Bursts   *burstTable // nil if there is no suggestion
	Keys     keyTable
	Text     string // what the rest of the page does not have
}

// copyable is a text with a button that copies it.
type copyable struct{ ID, Title, Text string }

// WriteHTML writes a page that needs no other file. It has charts of the requests over time and of
// the bursts for a suggestion, each with its table, and a table of keys. Options.Picture must be
// set.
func (res *Result) WriteHTML(w io.Writer) error {
	rep := &res.Report
	p := page{
		Security: pageSecurity, Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Log: rep.logName(), Headline: strings.TrimSpace(rep.headline() + " " + rep.cost()),
		Next: rep.nextStep(), Time: res.timeline.table(rep.Suggestion == nil), Keys: res.keyTable(),
	}
	if s := rep.Suggestion; s != nil {
		p.Curve, p.Bursts, p.Use = res.curve, s.burstTable(), rep.use()
	}
	var text strings.Builder
	if rep.Sample {
		text.WriteString("GENERATED SAMPLE: this log is made up, it is not real traffic.\n")
	}
	rep.writeData(&text)
	rep.writeTables(&text)
	rep.writeNotes(&text)
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

// use returns the commands and the files that set the suggested limit.
func (rep *Report) use() (all []copyable) {
	s, l := rep.Suggestion, rep.suggestedLimit()
	if l == nil {
		return nil
	}
	all = append(all, copyable{"replay", "Replay it on another log",
		fmt.Sprintf("tb replay --rate %s --burst %d%s FILE", l.Rate, l.Burst, rep.replayFlags)})
	if l.Policy != nil {
		all = append(all, copyable{"proxy", "Run it", "tb proxy --policy policy.json" + rep.proxyFlags},
			copyable{"policy", "policy.json", policyText(l.Policy)})
	}
	if s.Export != "" {
		all = append(all, copyable{"export", s.exportFile + ", as exported", s.Export})
	}
	return all
}
