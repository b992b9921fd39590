package accesslog

import "testing"

// lines has a usual line of each format.
var lines = []struct {
	name   string
	schema Schema
	line   string
	agent  string
}{
	{"common", Schema{}, line("1.2.3.4"), ""},
	{"combined", Schema{}, line("1.2.3.4") + ` "http://example.com/" "Mozilla/5.0"`,
		"Mozilla/5.0"},
	{"Caddy", Schema{}, caddyLine, "curl/7.82.0"},
	{"nginx JSON", Schema{}, nginxLine, ""},
	{"Traefik JSON", Schema{}, traefikLine, ""},
	{"Cloudflare", Schema{}, cloudflareLine, ""},
	{"logfmt", Schema{}, logfmtLine, "Mozilla/5.0 (X)"},
	{"HAProxy", Schema{}, haproxyLine, ""},
	{"ALB", Schema{}, albLine, "curl/7.46.0"},
	{"Envoy", Schema{}, envoyLine, "nsq2http"},
	{"Istio", Schema{}, istioLine, "curl/7.73.0-DEV"},
	{"S3", Schema{}, s3Line, ""},
	{"log_format", Schema{LogFormat: combinedFormat},
		line("1.2.3.4") + ` "http://example.com/" "Mozilla/5.0"`, "Mozilla/5.0"},
}

// A usual line is parsed without allocations. The User-Agent is found in each format that has it.
func TestParsingDoesNotAllocate(t *testing.T) {
	for _, tt := range lines {
		tt.schema.Extra = []string{"request.headers.X-Api-Key"}
		d, err := newDetector(tt.schema)
		if err != nil {
			t.Fatal(err)
		}
		var rec Record
		data := []byte(tt.line)
		allocs := testing.AllocsPerRun(100, func() {
			if err := d.parse(data, &rec); err != nil {
				t.Fatal(tt.name, err)
			}
		})
		if got := string(rec.Agent); got != tt.agent {
			t.Errorf("%s: agent %q, want %q", tt.name, got, tt.agent)
		}
		if allocs != 0 && tt.name != "logfmt" { // the library copies a line
			t.Errorf("%s: %v allocations a line, want 0", tt.name, allocs)
		}
	}
}
