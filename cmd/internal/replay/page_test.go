package replay

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
)

// hostile are users that try to break out of the page. Clients choose such names.
var hostile = []string{
	`<script>document.title = "run"</script>`, `</script><script>document.title = "run"</script>`,
	`"><img src=x onerror="document.title = 'run'">`, `' onmouseover='document.title = "run"`,
	"\u202etxt.exe", "\x1b[2J", `{{.Security}}`, `<!--`, `]]>`, "\u2028", "</pre></style>",
}

// hostileLog has requests of hostile users.
func hostileLog(t *testing.T) string {
	t.Helper()
	var log strings.Builder
	for i, user := range hostile {
		text, err := json.Marshal(user)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 + i {
			fmt.Fprintf(&log, `{"ts": %d, "status": 200, "ip": "1.2.3.4", "user": %s}`+"\n",
				1431856800+1000*i, text)
		}
	}
	return log.String()
}

func pageOf(t *testing.T, o Options, in ...Input) string {
	t.Helper()
	var b strings.Builder
	if err := replay(t, o, in...).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	// reference matches what may refer to another file.
	reference = regexp.MustCompile(`(src|srcset|href|action)="[^"]*"|url\(|@import|://|\bfetch\b`)

	securityPolicy = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="` +
		`(default-src &#39;none&#39;; [^"]*)">`)
	inline = regexp.MustCompile(`<(script|style|link|img)`)
)

// between returns the text between two others.
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestThePageIsSelfContained(t *testing.T) {
	for _, o := range []Options{options(t, "1", 5), suggestOptions(t, "1%", "")} {
		page := pageOf(t, o, sampled(5000))
		refs := reference.FindAllString(page, -1)
		if got := strings.Join(refs, " "); got != `href="data:," ://` {
			t.Errorf("the page refers to %s, want an empty icon, and the address of uPlot in a comment", got)
		}
		all := strings.Count(page, "<details")
		if open := strings.Count(page, "<details open>"); open != all || open == 0 {
			t.Errorf("without scripts %d of %d tables stand open", open, all)
		}
		if !strings.Contains(page, "Copyright (c) 2022 Leon Sorokin") {
			t.Error("the page has uPlot without its licence")
		}
		policy := securityPolicy.FindStringSubmatchIndex(page)
		if first := inline.FindStringIndex(page); policy == nil || policy[0] > first[0] {
			t.Fatalf("the policy is at %v, the first script, style or icon at %v", policy, first)
		}
		allowed := html.UnescapeString(page[policy[2]:policy[3]])
		for _, want := range []string{
			"script-src '" + integrity(between(page, "<script>", "</script>")) + "'",
			"style-src '" + integrity(between(page, "<style>", "</style>")) + "'",
		} {
			if !strings.Contains(allowed, want) {
				t.Errorf("the policy is %s, want %s in it", allowed, want)
			}
		}
	}
}

func TestThePageOfNothing(t *testing.T) {
	for _, o := range []Options{options(t, "1", 5), suggestOptions(t, "1%", "")} {
		page := strings.ReplaceAll(pageOf(t, o), pageScript, "")
		for _, want := range []string{">There is no request in the log.<", "--format says how to read"} {
			if !strings.Contains(page, want) || strings.Contains(page, "NaN") {
				t.Errorf("no %q in %s", want, page)
			}
		}
	}
}
