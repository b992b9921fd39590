package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// ReadFile returns the text of a file, which may be a pipe, or an error if ctx is done first.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	text, err := textfile.Await(ctx, name, func() (string, error) {
		text, err := os.ReadFile(name)
		return string(text), err
	})
	return []byte(text), err
}

// ParsePolicy reads a policy as httplimit.ParsePolicy does. Keys without an extractor and claims
// that are not read from unverified tokens are errors, too, because tb supplies neither.
func ParsePolicy(data []byte) (*httplimit.Policy, error) {
	return httplimit.ParsePolicyFor(data, httplimit.WithoutClaims())
}

// ParsePolicyFile is ParsePolicy for the text of a file. The error has a line for each problem.
func ParsePolicyFile(name string, data []byte) (*httplimit.Policy, error) {
	p, err := ParsePolicy(data)
	if err != nil {
		err = fmt.Errorf("%s is not accepted:\n%s", name, strings.Join(Problems(err), "\n"))
	}
	return p, err
}

// Problems returns the text of each error that err joins, with its path in the file.
func Problems(err error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{strings.TrimPrefix(err.Error(), "httplimit: policy: ")}
	}
	var all []string
	for _, e := range joined.Unwrap() {
		all = append(all, Problems(e)...)
	}
	return all
}
