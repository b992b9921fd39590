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

// The logs in testdata are of programs as they are installed, three requests each. The third one is
// of 192.0.2.7, 2001:db8::7 or another client.
func TestSamplesOfPrograms(t *testing.T) {
	want := map[string]string{
		"chi":            `chi, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /users`,
		"cloudfront":     `w3c, 3 requests, 2 messages, 0 malformed; "192.0.2.100" /index.html`,
		"compose":        `combined, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /`,
		"docker":         `combined, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /`,
		"elb":            `elb, 3 requests, 0 messages, 0 malformed; "192.168.131.40" /`,
		"flask":          `flask, 3 requests, 1 messages, 0 malformed; "192.0.2.7" /login`,
		"gin":            `gin, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /users`,
		"gunicorn":       `combined, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /login`,
		"iis":            `w3c, 3 requests, 4 messages, 0 malformed; "2001:db8::7" /api/orders`,
		"iis-time":       `w3c, 1 requests, 4 messages, 0 malformed; "172.16.255.255" /default.htm`,
		"kubectl-prefix": `combined, 3 requests, 0 messages, 0 malformed; "192.0.2.7" /`,
		"kubernetes":     `combined, 3 requests, 0 messages, 1 malformed; "192.0.2.7" /`,
		"npm":            `nginx-proxy-manager, 3 requests, 0 messages, 0 malformed; "192.0.2.8" /`,
		"rails":          `rails, 3 requests, 2 messages, 0 malformed; "192.0.2.7" /login`,
		"squid":          `squid, 3 requests, 0 messages, 0 malformed; "192.0.2.8" /a.css`,
		"uvicorn":        `uvicorn, 3 requests, 1 messages, 0 malformed; "192.0.2.7" /items/`,
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
			if first := requests[0].time[:10]; first < "2001" || first > "2024-01-03" {
				t.Errorf("%s: the first request is of %s", name, first)
			}
		}
		if base := strings.TrimSuffix(filepath.Base(name), ".log"); got != want[base] {
			t.Errorf("%s: got %s; want %s", name, got, want[base])
		}
	}
}
