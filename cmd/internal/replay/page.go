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
		Log: rep.logName(), Headline: rep.headline(), Next: rep.nextStep(),
		Time: res.replayer.timeline.table(rep.Suggestion == nil), Keys: res.keyTable(),
	}
	if s := rep.Suggestion; s != nil {
		p.Curve, p.Bursts, p.Use = s.curve, s.burstTable(), s.use()
	}
	var text strings.Builder
	rep.writeInput(&text)
	if s := rep.Suggestion; s != nil && s.Limit != nil {
		s.writeCandidates(&text, rep.Requests)
		if s.export != "" {
			s.writePaths(&text, rep.Requests)
		}
	}
	if len(rep.Algorithms) > 0 {
		rep.writeAlgorithms(&text)
	}
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

// headline returns the outcome in a sentence.
func (rep *Report) headline() string {
	if rep.Requests == 0 {
		return "There is no request in the log."
	}
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

// nextStep returns what to do about a result without a request, a refusal or a limit.
func (rep *Report) nextStep() string {
	s := rep.Suggestion
	switch {
	case rep.Requests == 0:
		return "Look whether it is the right file. --format says how to read its lines."
	case s != nil && s.Limit == nil:
		return "Try higher rates, or a greater share in --suggest."
	case s == nil && rep.Limits[0].Refused == 0:
		return "Without --rate and --burst, tb replay finds the limit that the log needs."
	}
	return ""
}

// use returns the commands and the files that set the suggested limit.
func (s *Suggestion) use() (all []copyable) {
	l := s.Limit
	if l == nil {
		return nil
	}
	all = append(all, copyable{"replay", "Replay it on another log",
		fmt.Sprintf("tb replay --rate %s --burst %d%s FILE", l.Rate, l.Burst, s.replayFlags)})
	if l.Policy != nil {
		all = append(all, copyable{"proxy", "Run it", "tb proxy --policy policy.json" + s.proxyFlags},
			copyable{"policy", "policy.json", policyText(l.Policy)})
	}
	if s.Export != "" {
		all = append(all, copyable{"export", s.exportFile + ", as exported", s.Export})
	}
	return all
}
