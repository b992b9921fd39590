package policycmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// Check is `tb policy check`.
type Check struct {
	Files []string `arg:"" name:"file" help:"${policy_files}"`
}

// Run prints the errors and warnings of each file, with their paths in the file. It returns an
// error that names the files with errors.
func (c *Check) Run(ctx context.Context, std cli.IO) error {
	var failed []error
	for _, name := range c.Files {
		data, err := read(ctx, name, std.Stdin)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if n := report(std.Stdout, name, data); n > 0 {
			failed = append(failed, fmt.Errorf("%s: %s", name, count(n, "error")))
		}
	}
	return errors.Join(failed...)
}

// report prints the errors or warnings of a policy, and returns the number of errors.
func report(w io.Writer, name string, data []byte) int {
	p, err := cli.ParsePolicy(data)
	if err != nil {
		problems := cli.Problems(err)
		for _, p := range problems {
			fmt.Fprintf(w, "%s: error: %s\n", name, p)
		}
		return len(problems)
	}
	warnings := p.Warnings()
	for _, text := range warnings {
		fmt.Fprintf(w, "%s: warning: %s\n", name, text)
	}
	fmt.Fprintf(w, "%s: %s, no errors, %s\n", name, count(rules(p), "rule"),
		count(len(warnings), "warning"))
	return 0
}

func rules(p *policy.Policy) (n int) {
	for i := range p.Sets {
		for range p.Sets[i].All() {
			n++
		}
	}
	return n
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
