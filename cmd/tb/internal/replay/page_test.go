package replay

import (
	"bytes"
	"encoding/base64"
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

var image = regexp.MustCompile(`data:image/svg\+xml;base64,([A-Za-z0-9+/=]*)`)

// decoded returns a page without its images, and the images.
func decoded(t *testing.T, page string) (rest string, images [][]byte) {
	t.Helper()
	page = strings.ReplaceAll(page, "&#43;", "+")
	for _, m := range image.FindAllStringSubmatch(page, -1) {
		svg, err := base64.StdEncoding.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, svg)
	}
	return image.ReplaceAllString(page, ""), images
}

// reference matches what may refer to another file.
var reference = regexp.MustCompile(`(src|srcset|href|action)="[^"]*"|url\(|@import|://|\bfetch\b`)

var (
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
		rest, images := decoded(t, pageOf(t, o, sampled(5000)))
		refs := strings.Join(reference.FindAllString(rest, -1), " ")
		if want := `href="data:," srcset="" src=""`; refs != want {
			t.Errorf("the page refers to %s, want %s", refs, want)
		}
		policy := securityPolicy.FindStringSubmatchIndex(rest)
		if first := inline.FindStringIndex(rest); policy == nil || policy[0] > first[0] {
			t.Fatalf("the policy is at %v, the first script, style or image at %v", policy, first)
		}
		allowed := html.UnescapeString(rest[policy[2]:policy[3]])
		for _, want := range []string{
			"script-src '" + integrity(between(rest, "<script>", "</script>")) + "'",
			"style-src '" + integrity(between(rest, "<style>", "</style>")) + "'",
		} {
			if !strings.Contains(allowed, want) {
				t.Errorf("the policy is %s, want %s in it", allowed, want)
			}
		}
		if len(images) != 2 || bytes.Equal(images[0], images[1]) {
			t.Errorf("%d images, want a light one and a dark one", len(images))
		}
		for _, svg := range images {
			checkXML(t, svg)
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
		rest, images := decoded(t, pageOf(t, byUser(o), input("<b>\u202e.log", hostileLog(t))))
		for _, text := range append(images, []byte(rest)) {
			if strings.ContainsAny(string(text), "\u202e\u2028\x1b") {
				t.Errorf("a control character in %.200s", text)
			}
		}
		if n := strings.Count(rest, "<script"); n != scripts+i {
			t.Errorf("%d scripts, want %d and %d for the curve", n, scripts, i)
		}
		for _, user := range hostile {
			if strings.ContainsAny(user, "<>") && strings.Contains(rest, user) {
				t.Errorf("%q is not escaped", user)
			}
		}
		if !strings.Contains(rest, "<bdi>&lt;!--</bdi>") || strings.Contains(rest, "<b>") {
			t.Errorf("the keys are not in the table:\n%s", rest)
		}
	}
}

func TestThePageOfNothing(t *testing.T) {
	for want, o := range map[string]Options{
		"No key is refused": options(t, "1", 5), "No limit is suggested": suggestOptions(t, "1%", ""),
	} {
		page, _ := decoded(t, pageOf(t, o))
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
		if rows := strings.Count(page, "<tr>"); rows != pageKeys+1 || len(page) > 1<<20 {
			t.Errorf("%d rows, %d bytes", rows, len(page))
		}
	}
}
