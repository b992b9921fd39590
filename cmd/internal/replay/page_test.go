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
		for range 3 + i {
			fmt.Fprintf(&log, `{"ts": %d, "ip": "1.2.3.4", "user": %s}`+"\n", 1431856800+i, text)
		}
	}
	return log.String()
}

func pageOf(t *testing.T, o Options, in ...Input) string {
	t.Helper()
	var b strings.Builder
	if err := drawn(t, o, in...).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	// reference matches what may refer to another file. A link to a bucket stays in the page.
	reference   = regexp.MustCompile(`(src|srcset|href|action)="[^"]*"|url\(|@import|://|\bfetch\b`)
	bucketLink  = regexp.MustCompile(`href="#bucket-[0-9]"`)
	inlineChart = regexp.MustCompile(`(?s)<svg class="chart".*?</div>`)

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
		refs := reference.FindAllString(bucketLink.ReplaceAllString(page, ""), -1)
		if got := strings.Join(refs, " "); got != `href="data:,"` {
			t.Errorf("the page refers to %s, want an empty icon", got)
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
		charts := inlineChart.FindAllString(page, -1)
		if len(charts) < 2 {
			t.Errorf("%d charts", len(charts))
		}
		for _, svg := range charts {
			checkXML(t, []byte(strings.TrimSuffix(svg, "</div>")))
		}
	}
}

func TestThePageEscapesKeys(t *testing.T) {
	byUser := func(o Options) Options {
		o.Keys = []string{"user"}
		return o
	}
	plain := pageOf(t, byUser(options(t, "1", 1)), input("a.log", `{"ts":1,"user":"u"}`))
	scripts := strings.Count(plain, "<script")
	for i, o := range []Options{options(t, "1", 1), suggestOptions(t, "50%", "0.1")} {
		page := pageOf(t, byUser(o), input("<b>\u202e.log", hostileLog(t)))
		if strings.ContainsAny(page, "\u202e\u2028\x1b") {
			t.Errorf("a control character in %s", page)
		}
		if n := strings.Count(page, "<script"); n != scripts+i {
			t.Errorf("%d scripts, want %d and %d for the curve", n, scripts, i)
		}
		for _, user := range hostile {
			if strings.ContainsAny(user, "<>") && strings.Contains(page, user) {
				t.Errorf("%q is not escaped", user)
			}
		}
		if !strings.Contains(page, "<bdi>&lt;!--</bdi>") || strings.Contains(page, "<b>") {
			t.Errorf("the keys are not in the table:\n%s", page)
		}
	}
}

func TestThePageOfNothing(t *testing.T) {
	for want, o := range map[string]Options{
		"No key is refused": options(t, "1", 5), "No limit is suggested": suggestOptions(t, "1%", ""),
	} {
		page := pageOf(t, o)
		if !strings.Contains(page, ">"+want+"<") || strings.Contains(page, "NaN") {
			t.Errorf("no %q in %s", want, page)
		}
	}
}

func TestThePageIsBounded(t *testing.T) {
	var log strings.Builder
	for n := range 3000 {
		name := strings.Repeat("x", 300)
		for range 2 + n%2 {
			log.WriteString(line(fmt.Sprintf("client%d%s", n, name), n, 1))
		}
	}
	for _, o := range []Options{options(t, "1/m", 1), suggestOptions(t, "50%", "")} {
		page := pageOf(t, o, input("a.log", log.String()))
		if rows := strings.Count(page, "<tr"); rows != pageKeys+1 || len(page) > 1<<20 {
			t.Errorf("%d rows, %d bytes", rows, len(page))
		}
	}
}
