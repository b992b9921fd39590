package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

func TestUsageErrors(t *testing.T) {
	for _, tt := range []struct {
		args string // separated by commas
		want string // text that the message must contain
	}{
		{"--nonsense", "Run \"tb-proxy --help\" for all flags.\n"},
		{"--upstream=localhost:3000", "http://localhost:3000"},
		{"--upstream=ftp://h", "http://localhost:3000"},
		{"--upstream=http://user:secret@h", `"http://user:xxxxx@h": want a URL`},
		{"--trusted-proxies=10.0.0.0/33", "10.0.0.0/8"},
		{"--max-keys=0", "1 to 1073741824"},
		{"--overflow=crash", `"forgive","refuse"`},
		{"--access-log=some", `"off","refused","all"`},
		{"--shutdown-timeout=-1s", "tb-proxy: --shutdown-timeout=-1s: want 0s or more"},
		{"--ipv4-prefix=0", "1 to 32"},
		{"--ipv6-prefix=129", "1 to 128"},
		{"--body-timeout=-1s", "tb-proxy: --body-timeout=-1s: want 0s or more"},
		{"--redis=http://h", "redis://localhost:6379/0"},
		{"--redis=h:1,--state=x", "want no --state"},
		{"--redis=h:1,--max-keys=5", "want no --state, --max-keys"},
		{"--redis=h:1,--policy=off", "want no --state"},
		{"--redis=h:1,--redis-failure=local", `"allow","refuse"`},
		{"--redis-timeout=1us", "at least 1ms"},
		{"--tls-cert=x", "both or neither"},
		{"--tls-key=x", "both or neither"},
		{"--client-address-header=a b", "--client-address-header"},
		{"--reason-field=a b", "--reason-field"},
	} {
		var stdout, stderr bytes.Buffer
		status := program.Run(t.Context(), strings.Split(tt.args, ","),
			cli.IO{Stdout: &stdout, Stderr: &stderr})
		if status != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want 2 and %q",
				tt.args, status, stdout.String(), stderr.String(), tt.want)
		}
	}
}

// Without arguments the proxy starts. Here it cannot, because its address is in use.
func TestNoArguments(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		t.Skip("another program has the address, and may leave it: ", err)
	}
	defer l.Close()
	var stdout, stderr bytes.Buffer
	status := program.Run(t.Context(), nil, cli.IO{Stdout: &stdout, Stderr: &stderr})
	if status != 1 || !strings.Contains(stderr.String(), "127.0.0.1:8080") {
		t.Errorf("status %d, stdout %q, stderr %q; want 1", status, stdout.String(), stderr.String())
	}
}
