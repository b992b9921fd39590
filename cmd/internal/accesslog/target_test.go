package accesslog

import (
	"fmt"
	"testing"
)

func TestPartsOfARequestLine(t *testing.T) {
	for line, want := range map[string]string{
		"GET /a?b=c&d HTTP/1.1":           `"GET" "" "/a" "b=c&d"`,
		"POST http://h/a?b#c HTTP/2.0":    `"POST" "h" "/a" "b"`,
		"PRI * HTTP/2.0":                  `"PRI" "" "*" ""`,
		"CONNECT h:443 HTTP/1.1":          `"CONNECT" "" "h:443" ""`,
		"GET /a#b?c HTTP/1.1":             `"GET" "" "/a" ""`,
		"GET /a b?c d HTTP/1.1":           `"GET" "" "/a b" "c d"`,
		"GET /?":                          `"GET" "" "/" ""`,
		`\x16\x03\x01`:                    `"" "" "" ""`,
		"":                                `"" "" "" ""`,
		"- http://host- -":                `"" "host" "" ""`,
		"GET http://h?http://other/ HTTP": `"GET" "h" "" "http://other/ HTTP"`,
	} {
		got := splitRequest([]byte(line))
		if s := fmt.Sprintf("%q %q %q %q", got.method, got.host, got.path, got.query); s != want {
			t.Errorf("%q: %s, want %s", line, s, want)
		}
	}
}
