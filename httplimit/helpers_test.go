package httplimit

import (
	"fmt"
	"testing"
)

var sprintf = fmt.Sprintf

// mustNew returns a limiter of a policy in JSON.
func mustNew(t testing.TB, policy string, opts ...Option) *Limiter {
	t.Helper()
	l, err := New(mustParse(t, policy), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustParse(t testing.TB, policy string) *Policy {
	t.Helper()
	p, _, err := ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
