package accesslog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The logs in testdata are of programs as they are installed. testdata/formats/README.md has their
// sources.
func TestSamplesOfPrograms(t *testing.T) {
	want := map[string]string{
		"chi":            `chi, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /users`,
		"cloudfront":     `w3c, 3 requests, 2 messages, 0 malformed; "81.2.69.143" /getApplications`,
		"compose":        `combined, 3 requests, 0 messages, 0 malformed; "172.22.0.1" /1`,
		"docker":         `flask, 3 requests, 0 messages, 0 malformed; "172.17.0.1" /messages`,
		"elb":            `elb, 3 requests, 0 messages, 0 malformed; "192.168.131.40" /`,
		"flask":          `flask, 3 requests, 1 messages, 0 malformed; "192.0.2.7" /login`,
		"gin":            `gin, 3 requests, 0 messages, 0 malformed; "127.0.0.1" /weather`,
		"gunicorn":       `combined, 2 requests, 0 messages, 2 malformed; "127.0.0.1" /`,
		"iis":            `w3c, 3 requests, 9 messages, 0 malformed; "2001:cdba:0000:0000:`,
		"iis-time":       `w3c, 1 requests, 4 messages, 0 malformed; "172.16.255.255" /default.htm`,
		"kubectl-prefix": `combined, 3 requests, 0 messages, 0 malformed; "10.244.0.1" /api/health`,
		"kubernetes":     `combined, 3 requests, 0 messages, 1 malformed; "10.42.0.185" /`,
		"npm":            `nginx-proxy-manager, 3 requests, 0 messages, 0 malformed; "192.0.2.8" /`,
		"rails":          `rails, 3 requests, 4 messages, 0 malformed; "50.31.29.217" /dashboard`,
		"s3":             `s3, 1 requests, 3 messages, 0 malformed; "192.0.2.3" /b`,
		"squid":          `squid, 3 requests, 1 messages, 0 malformed; "192.0.2.8" /a.css`,
		"uvicorn":        `uvicorn, 3 requests, 2 messages, 0 malformed; "192.168.65.1" /admin/cdscm/`,
		"uwsgi":          `uwsgi, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /a`,
		"zeek":           `w3c, 3 requests, 4 messages, 0 malformed; "141.142.220.236" /b`,
	}
	names, err := filepath.Glob("testdata/formats/*.log")
	if err != nil || len(names) != len(want) {
		t.Errorf("%d files, %v; want %d", len(names), err, len(want))
	}
	for _, name := range names {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		requests, bad, format := read(t, strings.NewReader(string(log)), Schema{})
		all := len(bad)
		bad = slices.DeleteFunc(bad, func(e *LineError) bool { return errors.Is(e, ErrMessage) })
		got := fmt.Sprintf("%s, %d requests, %d messages, %d malformed", format, len(requests),
			all-len(bad), len(bad))
		if n := len(requests); n > 0 {
			got += fmt.Sprintf("; %q %s", requests[n-1].ip, requests[n-1].path)
			if first := requests[0].time[:10]; first < "2001" || first > "2026-12" {
				t.Errorf("%s: the first request is of %s", name, first)
			}
		}
		w := want[strings.TrimSuffix(filepath.Base(name), ".log")]
		if w == "" || !strings.HasPrefix(got, w) {
			t.Errorf("%s: got %s; want %s", name, got, w)
		}
	}
}
