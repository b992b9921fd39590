package accesslog

import (
	"errors"
	"strings"
	"testing"
)

var prefixes = map[string]string{
	"docker compose":          `web-1  | `,
	"docker compose, one":     `app_web_1 | `,
	"docker compose -t":       `web-1  | 2015-05-17T10:05:03.500000000Z `,
	"kubectl --prefix":        `[pod/web-5d4f9c/nginx] `,
	"kubectl with timestamps": `[pod/web-5d4f9c/nginx] 2015-05-17T10:05:03.500000000Z `,
	"Upsun":                   `frontend.0 nginx: `,
	"kail":                    `default/web-5d4f9c[nginx]: `,
	"stern":                   `web-5d4f9c nginx `,
	"grep -n":                 `17:`,
	"grep":                    `/var/log/nginx/access.log:`,
	"grep -n of files":        `access.log.1:17:`,
	"logger":                  `2015-05-17 10:05:03,123 `,
	"logger with a zone":      `2015-05-17 10:05:03.123 +0000 `,
	"seconds since 1970":      `1431857103.123 `,
	"syslog without a tag":    `May 17 10:05:03 `,
	"logcli":                  `2015-05-17T12:05:03+02:00 {app="web", host="a b"} `,
	"Grafana":                 "1431857103500\t2015-05-17T10:05:03.500Z\t",
	"aws logs tail":           `2015-05-17T10:05:03.500000+00:00 stream/web `,
}

func TestPrefixes(t *testing.T) {
	for name, prefix := range prefixes {
		for _, line := range []string{
			line("192.0.2.7"), line("2001:db8::7"), nginxLine, caddyLine, line("192.0.2.7, 10.0.0.1"),
			`{"ts":1431857103,"uri":"/a"}`,
			strings.Replace(line("192.0.2.7"), "192", "www.example.com:80 192", 1),
		} {
			want, wantFormat := one(t, line)
			got, bad, format := read(t, strings.NewReader(prefix+line+"\n"+prefix+line), Schema{})
			if len(got) == 0 {
				t.Errorf("%s: malformed %v", name, bad)
				continue
			}
			got[0].host, want.host = "", "" // one name before a client may be the host
			if len(got) != 2 || got[0] != want || format != wantFormat {
				t.Errorf("%s: got %+v (%s), malformed %v, want %+v", name, got, format, bad, want)
			}
		}
	}
}

// A prefix is not the client of any line, and other programs in the same log are not requests.
func TestLinesOfOtherPrograms(t *testing.T) {
	log := "web-1  | " + line("192.0.2.7") + "\n" +
		"db-1   | 2015-05-17 10:05:03.123 UTC [1] LOG:  database system is ready\n" +
		"web-1  | starting - - up\n" + "web-2  | " + line("192.0.2.8") + "\n" + line("192.0.2.9")
	got, bad, _ := read(t, strings.NewReader(log), Schema{})
	if ips := strings.Join(clients(got), " "); ips != "192.0.2.7 192.0.2.8" || len(bad) != 3 {
		t.Errorf("got %s, malformed %v", ips, bad)
	}
}

// What stands before the client is a prefix only if the client would not be an address otherwise.
// So the names of hosts are clients, and a user cannot choose another client by its name.
func TestNoPrefixes(t *testing.T) {
	for _, tt := range []struct{ origin, ip, user string }{
		{"client.example - -", "client.example", ""},
		{"client.example - eve 192.0.2.7 - -", "client.example", "eve 192.0.2.7 - -"},
		{"198.51.100.7 - 192.0.2.7 - -", "198.51.100.7", "192.0.2.7 - -"},
		{"198.51.100.7 - eve: 192.0.2.7 - -", "198.51.100.7", "eve: 192.0.2.7 - -"},
		{"2001:db8::7 - -", "2001:db8::7", ""},
		{"unix: - -", "unix:", ""},
	} {
		line := tt.origin + ` [17/May/2015:10:05:03 +0000] "GET /p HTTP/1.1" 200 1`
		if got, _ := one(t, line); got.ip != tt.ip || got.user != tt.user {
			t.Errorf("%s: got %+v", tt.origin, got)
		}
	}
	for _, origin := range []string{"<b> - -", "web  | eve - -", "web-1 nginx eve", "(null) - -"} {
		line := origin + ` [17/May/2015:10:05:03 +0000] "GET /p HTTP/1.1" 200 1`
		got, bad, _ := read(t, strings.NewReader(line), Schema{})
		if len(got) > 0 || len(bad) != 1 || !errors.Is(bad[0], errClient) {
			t.Errorf("%s: got %+v, malformed %v", origin, got, bad)
		}
	}
}
