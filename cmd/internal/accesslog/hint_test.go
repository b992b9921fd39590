package accesslog

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestHints(t *testing.T) {
	for _, tt := range []struct{ name, log, want string }{
		{"client", `{"time":"2015-05-17T10:05:03Z","remoteAddr":"192.0.2.7:99","path":"/a"}`,
			"the log has remoteAddr: try --field ip=remoteAddr"},
		{"the server's address too", `{"ts":1431857103,"path":"/","net":{"serverIp":"10.0.0.1",` +
			`"clientAddress":"192.0.2.7","otherIp":"10.0.0.3"}}`,
			"the log has net.clientAddress: try --field ip=net.clientAddress"},
		{"time", `{"when":"2015-05-17T10:05:03Z","size":1431857103,"ip":"192.0.2.7"}`,
			"the log has when: try --field time=when"},
		{"several", `{"level":30,"eventTime":1431857103123,"duration":1431857103,"userIp":"192.0.2.7",` +
			`"http":{"target":"/a?b","referrer":"http://h.example/"}}`,
			"the log has eventTime, userIp, http.target: try --field " +
				"time=eventTime,ip=userIp,uri=http.target"},
		{"after other messages", `{"msg":"starting"}` + "\n" + `{"t":1}` + "\n" +
			`{"at":"2015-05-17T10:05:03Z","remoteAddr":"192.0.2.7"}`,
			"the log has at, remoteAddr: try --field time=at,ip=remoteAddr"},
		{"nothing", `{"msg":"starting","pid":4711}`, ""},
		{"no need", caddyLine, ""},
		{"an envelope", `{"log":"{\"time\":\"2015-05-17T10:05:03Z\",\"remoteAddr\":\"192.0.2.7\"}\n"}`,
			"the log has remoteAddr: try --field ip=remoteAddr"},
	} {
		r, err := NewReader(t.Context(), "a.log", strings.NewReader(tt.log+"\n"+tt.log), Schema{})
		var rec Record
		var bad *LineError
		for err == nil || errors.As(err, &bad) {
			err = r.Next(&rec)
		}
		if !errors.Is(err, io.EOF) || r.Hint() != tt.want {
			t.Errorf("%s: %v, hint %q, want %q", tt.name, err, r.Hint(), tt.want)
		}
		if r.Format() == Undetected && !strings.HasSuffix(r.NoFormat().Error(), tt.want) {
			t.Errorf("%s: no hint in %v", tt.name, r.NoFormat())
		}
	}
}
