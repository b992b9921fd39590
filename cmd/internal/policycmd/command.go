// Package policycmd is `tb policy`, which checks policy files and explains which rules apply to a
// request.
package policycmd

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// Command is `tb policy`: its fields are its subcommands. Vars has the help of their flags.
type Command struct {
	Check   Check   `cmd:"" help:"Print every error and warning of policy files."`
	Explain Explain `cmd:"" help:"Show which rules apply to a request, with their keys and costs."`
}

// Vars has the help texts of the flags, which kong interpolates.
var Vars = kong.Vars{
	"policy_files":   "Policies to check; - is standard input.",
	"policy_file":    "The policy; - is standard input.",
	"policy_request": "Method and target of the request.",
	"policy_header":  "A header field of the request, as in 'X-Api-Key: k1'; may be repeated.",
	"policy_from":    "Address from which the request comes.",
	"policy_trusted": "Networks of the proxies whose X-Forwarded-For is believed.",
}

// read returns the contents of a file, or of stdin if the name is -. It returns an error if ctx is
// done first, because a named pipe waits for its writer.
func read(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	done := make(chan struct{})
	var text []byte
	var failed error
	go func() {
		defer close(done)
		if name == "-" {
			text, failed = io.ReadAll(stdin)
		} else {
			text, failed = os.ReadFile(name)
		}
	}()
	select {
	case <-done:
		return text, failed
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: interrupted while reading", name)
	}
}
