package accesslog

import (
	"strings"
	"testing"
)

// The User-Agent is found in each format that has it.
func TestAgents(t *testing.T) {
	want := map[string]string{
		"combined": "Mozilla/5.0", "log_format": "Mozilla/5.0", "Caddy": "curl/7.82.0",
		"logfmt": "Mozilla/5.0 (X)", "IIS": "Mozilla/5.0+(Windows+NT+10.0)",
		"CloudFront": "Mozilla/4.0%20(compatible)", "ALB": "curl/7.46.0", "ELB": "curl/7.38.0",
		"Envoy": "nsq2http", "Istio": "curl/7.73.0-DEV",
	}
	for _, tt := range lines {
		d, err := newDetector(tt.schema)
		if err != nil {
			t.Fatal(err)
		}
		var rec Record
		for line := range strings.Lines(tt.begin + tt.line) {
			err = d.parse([]byte(strings.TrimRight(line, "\n")), &rec)
		}
		if got := string(rec.Agent()); err != nil || got != want[tt.name] {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, want[tt.name])
		}
	}
}
