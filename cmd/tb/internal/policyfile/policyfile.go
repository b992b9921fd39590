// Package policyfile reads the policies of the commands of tb.
package policyfile

import (
	"errors"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Parse reads a policy as httplimit.ParsePolicy does. In contrast to that, keys for which
// httplimit has no extractor are errors as well, for tb registers none.
func Parse(data []byte) (p *httplimit.Policy, warnings []string, err error) {
	p, warnings, err = httplimit.ParsePolicy(data)
	if err == nil {
		_, err = httplimit.New(p)
	}
	return p, warnings, err
}

// Problems returns each of the errors that err joins, in words, with its path in the file.
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
