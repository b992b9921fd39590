package daemon

import (
	"encoding/json"
	stdlog "log"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// Values of requests cannot control a terminal, in either format.
func TestLogEscapesControls(t *testing.T) {
	const hostile = "a\x1b\x7f\u009b\u202e\u2066\u200b\U000e0041\x9bé"
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		log, lines := NewLog(&b, format)
		log.Info("m", "path", hostile)
		lines.Close()
		if strings.ContainsAny(b.String(), "\x1b\x7f\u009b\u202e\u2066\u200b\U000e0041") ||
			!strings.Contains(b.String(), "é") || strings.Count(b.String(), "\n") != 1 {
			t.Errorf("%s: %q", format, b.String())
		}
		if format == "json" && !json.Valid([]byte(b.String())) {
			t.Error(b.String())
		}
	}
}

// net/http's own messages are lines of the log.
func TestMessagesOfNetHTTP(t *testing.T) {
	log := testkit.NewTranscript()
	NewErrorLog(log.Logger()).Printf("http: panic serving\ngoroutine 1 [running]:\n")
	defer stdlog.SetFlags(stdlog.Flags())
	defer stdlog.SetOutput(stdlog.Writer())
	RedirectStandardLog(log.Logger())
	stdlog.Print("Unsolicited response")
	if got := log.Until(t, "Unsolicited"); got !=
		"level=WARN msg=\"http: panic serving\"\nlevel=WARN msg=\"Unsolicited response\"" {
		t.Error(got)
	}
}
