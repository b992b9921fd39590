package redis

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// The server of the other tests has one version. These are the texts of others.
func TestErrorsOfOtherVersionsNameTheirCause(t *testing.T) {
	const old = "ERR Error running script (call to f_0b5e): @user_script:1: "
	const end = " script: 0b5e, on @user_script:1."
	c := dial(t, redistest.Start(t))
	for _, tt := range []struct {
		cause Cause
		text  string
	}{
		{CauseForbidden, old + "@user_script: 1: The user executing the script can't run this command"},
		{CauseOutOfMemory, old + "@user_script: 1: -OOM command not allowed"},
		{CauseReadOnly, old + "@user_script: 1: -READONLY You can't write against a read only replica."},
		{CauseReadOnly, old + "@user_script: 1: -NOREPLICAS Not enough good replicas to write."},
		{CauseForeign, old + "WRONGTYPE Operation against a key"},
		{CauseRejected, old + "attempt to call a nil value"},
		{CauseForbidden, "ERR The user executing the script can't access at least one of the keys" + end},
		{CauseForbidden, "ERR ACL failure in script: User a has no permissions to run 'set'" + end},
		{CauseForbidden, "ERR ACL failure in script: No permissions to access a key" + end},
		{CauseForeign, "WRONGTYPE Operation against a key" + end},
		{CauseRejected, "ERR user_script:1: Attempt to modify a readonly table" + end},
	} {
		reply := c.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(tt.text)
		err := c.Do(t.Context(), reply.Build()).Error()
		if err == nil {
			t.Fatalf("%q is not an error", tt.text)
		}
		wantCause(t, clientError(err), tt.cause)
	}
}
