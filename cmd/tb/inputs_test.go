package main

import (
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// Rotated logs of several servers, found by a pattern and packed, are one log.
func TestRotatedLogs(t *testing.T) {
	at := func(second string) string { return strings.Replace(validLine, ":03 ", ":"+second+" ", 1) }
	older := testkit.File(t, "access.log.2.gz", zipped(t, at("01")))
	plain := testkit.File(t, "access.log", at("04"))
	proxy := "<134>May 17 10:05:02 haproxy[1]: 1.2.3.4:33317 [17/May/2015:10:05:02.655] web app/s1" +
		` 0/0/0/1/1 200 17 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"` + "\n"
	rep := report(t, zipped(t, proxy), "--rate=1", "--burst=1", plain, "-", older)
	if rep.Requests != 3 || rep.Keys != 1 || len(rep.Files) != 3 ||
		rep.Files[1].Format != "haproxy" || rep.Files[2].Name != older {
		t.Errorf("%+v", rep)
	}
}

func TestLogFormatOfNginx(t *testing.T) {
	const log = `1431857103.250 "GET /a HTTP/2.0" 192.0.2.7 "k1"` + "\n"
	rep := report(t, log+log, "--rate=1", "--burst=1", "--key=ip,path,http_x_api_key",
		`--format=$msec "$request" $remote_addr "$http_x_api_key"`, "-")
	if len(rep.Top) != 1 || strings.Join(rep.Top[0].Key, " ") != "192.0.2.7 /a k1" ||
		rep.Files[0].Format != accesslog.LogFormat {
		t.Errorf("%+v", rep)
	}
}
