package accesslog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// inEnvelopes returns a line in all envelopes but syslog. Each has the time 10:05:03.5.
func inEnvelopes(line string) map[string]string {
	text, _ := json.Marshal(line + "\n") // a string always can be
	return map[string]string{
		"CRI":         `2015-05-17T10:05:03.5Z stdout F ` + line,
		"CRI, stderr": `2015-05-17T12:05:03.500000000+02:00 stderr P ` + line,
		"Docker":      `{"log":` + string(text) + `,"stream":"stdout","time":"2015-05-17T10:05:03.5Z"}`,
		"journald": `{"_HOSTNAME":"h","MESSAGE":` + string(text) + `,"PRIORITY":"6",` +
			`"__REALTIME_TIMESTAMP":"1431857103500000"}`,
		"Filebeat": `{"@timestamp":"2015-05-17T10:05:03.5Z","host":{"name":"web"},` +
			`"log":{"offset":17},"message":` + string(text) + `}`,
		"Loki": `{"timestamp":"2015-05-17T10:05:03.5Z","message":` + string(text) + `}`,
		"logcli -o jsonl": `{"labels":{"app":"web"},"line":` + string(text) +
			`,"timestamp":"2015-05-17T12:05:03.5+02:00"}`,
		"Google Cloud": `{"textPayload":` + string(text) + `,"timestamp":"2015-05-17T10:05:03.5Z"}`,
		"docker logs":  `2015-05-17T10:05:03.500000000Z ` + line,
	}
}

func TestEnvelopes(t *testing.T) {
	for _, tt := range lines {
		if tt.schema.LogFormat != "" || strings.Contains(tt.name, " in ") {
			continue // the format is given, or the line has an envelope already
		}
		want, wantFormat := one(t, tt.begin+tt.line)
		for name := range inEnvelopes("") {
			if tt.begin != "" && name == "docker logs" {
				continue // a directive is like the tag of syslog
			}
			var log strings.Builder
			for line := range strings.Lines(tt.begin + tt.line) {
				log.WriteString(inEnvelopes(strings.TrimSuffix(line, "\n"))[name] + "\n")
			}
			if got, format := one(t, log.String()); got != want || format != wantFormat {
				t.Errorf("%s in %s: got %+v (%s), want %+v (%s)", tt.name, name, got, format,
					want, wantFormat)
			}
		}
	}
}

// A line without a time has the time of its envelope.
func TestTimeOfTheEnvelope(t *testing.T) {
	const heroku = `at=info method=GET path="/a?b" host=h.example request_id=8601b555` +
		` fwd="192.0.2.7" dyno=web.1 connect=1ms service=18ms status=200 bytes=17 protocol=https`
	want := request{"2015-05-17T10:05:03.5Z", "192.0.2.7", "", "h.example", "/a", 17}
	lines := inEnvelopes(heroku)
	lines["heroku logs"] = `2015-05-17T10:05:03.500000+00:00 heroku[router]: ` + heroku
	lines["Logplex"] = `<158>1 2015-05-17T10:05:03.500000+00:00 host heroku router - ` + heroku
	for name, line := range lines {
		if got, format := one(t, line); got != want || format != Logfmt {
			t.Errorf("%s: got %+v (%s), want %+v", name, got, format, want)
		}
	}
	for _, line := range []string{
		heroku,
		`May 17 10:05:03 h heroku: ` + heroku, // has no year
		`{"log":"ip=192.0.2.7","time":"yesterday"}`,
		`{"log":"ip=192.0.2.7"}`,
		`2015-05-17T10:05:03 stdout F ip=192.0.2.7`, // has no zone
	} {
		if got, bad, _ := read(t, strings.NewReader(line), Schema{}); len(got) > 0 || len(bad) != 1 {
			t.Errorf("%s: got %v, malformed %v", line, got, bad)
		}
	}
}

// Messages before the first request do not decide the format.
func TestMessagesBetweenRequests(t *testing.T) {
	for name, line := range inEnvelopes(nginxLine) {
		message := inEnvelopes("starting worker process 29")[name]
		log := message + "\n" + line + "\n" + message + "\n" + line + "\n" + nginxLine
		got, bad, format := read(t, strings.NewReader(log), Schema{})
		if len(got) != 2 || len(bad) != 3 || !errors.Is(bad[2], errNoEnvelope) || format != JSON {
			t.Errorf("%s: got %v (%s), malformed %v", name, got, format, bad)
		}
	}
}

func TestNoEnvelopes(t *testing.T) {
	for _, line := range []string{
		`{"time":"2015-05-17T10:05:03Z","ip":"192.0.2.7","message":"GET / 200"}`,
		`{"time":"2015-05-17T10:05:03Z","ip":"192.0.2.7","log":["x"],"message":null}`,
		`{"time":"2015-05-17T10:05:03Z","ip":"192.0.2.7","message":""}`,
		`{"time":"2015-05-17T10:05:03Z","ip":"192.0.2.7","message":"host=h path=/ status=200"}`,
		`{"time":"2015-05-17T10:05:03Z","ip":"192.0.2.7","message":"{\"host\":\"h\",\"uri\":\"/\"}"}`,
	} {
		got, format := one(t, line)
		if want := (request{at, "192.0.2.7", "", "", "", Unknown}); got != want || format != JSON {
			t.Errorf("%s: got %+v (%s)", line, got, format)
		}
	}
	// The object around a line does not count if neither has a client.
	outer := `{"time":"2015-05-17T10:05:03Z","path":"/var/log/a","message":"host=h path=/a"}`
	if got, format := one(t, outer); got != (request{at, "", "", "h", "/a", Unknown}) ||
		format != Logfmt {
		t.Errorf("%s: got %+v (%s)", outer, got, format)
	}
	// Common Log Format would take the prefix for a client and a user.
	for _, prefix := range []string{"May 17 10:05:03 h nginx: ", "2015-05-17T10:05:03Z stdout F "} {
		line := prefix + `- [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`
		if got, bad, _ := read(t, strings.NewReader(line), Schema{}); len(got) > 0 || len(bad) != 1 {
			t.Errorf("%s: got %v, malformed %v", line, got, bad)
		}
	}
	for _, line := range []string{
		`2015-05-17T10:05:03Z stdout F`, `2015-05-17T10:05:03Z stdout f x`,
		`2015-05-17T10:05:03Z stdin F x`, `2015-05-17T10:05:03Z`, `17/May/2015 stdout F x`,
	} {
		if message, _, ok := cutCRI([]byte(line)); ok {
			t.Errorf("%s has the message %q", line, message)
		}
	}
}
