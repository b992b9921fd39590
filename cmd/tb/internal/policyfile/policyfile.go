// Package policyfile reads policies for the commands of tb.
package policyfile

import (
	"errors"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Parse reads a policy as httplimit.ParsePolicy does. Keys without an extractor and claims
// that are not read from unverified tokens are errors, too, because tb supplies neither. With such errors alone, Parse also returns the policy.
func Parse(data []byte) (*httplimit.Policy, error) {
	p, err := httplimit.ParsePolicy(data)
	if err == nil {
		_, err = httplimit.New(p, httplimit.WithoutClaims())
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
