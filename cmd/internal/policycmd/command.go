// Package policycmd is `tb policy`, which checks policy files and explains which rules apply to a
// request.
package policycmd

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
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
	"policy_header": "A header field of the request, as in 'X-Api-Key: k1'; may be repeated. As in" +
		" tb-proxy, X-Real-IP and the like count only from --trusted-proxies, but no name with _.",
	"policy_from":    "Address from which the request comes.",
	"policy_trusted": "Networks of the proxies whose X-Forwarded-For is believed.",
}

// read returns the text of a file, or of stdin if the name is -, or an error if ctx is done first.
func read(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	if name != "-" {
		return cli.ReadFile(ctx, name)
	}
	text, err := textfile.Await(ctx, name, func() (string, error) {
		text, err := io.ReadAll(stdin)
		return string(text), err
	})
	return []byte(text), err
}
