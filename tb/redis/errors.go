package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/rueidis"
)

// ErrClosed is returned by the calls of a limiter after Close.
var ErrClosed = errors.New("tb/redis: the limiter is closed")

// Cause is why Redis did not decide a call.
type Cause int

const (
	// CauseBusy says that as many calls are under way as the breaker allows while it recovers.
	CauseBusy Cause = iota
	// CauseOpen says that the breaker is open, because of the error in Err.
	CauseOpen
	// CauseTimeout says that the timeout of the limiter, or the deadline of the context, has passed.
	// The server took the tokens only if the command was in time, and its reply was late.
	CauseTimeout
	// CauseCanceled says that the context of the call was cancelled.
	CauseCanceled
	// CauseUnreachable says that the connection failed. The server may have taken the tokens.
	CauseUnreachable
	// CauseLoading says that the server reads its data after a start, or its master is down.
	CauseLoading
	// CauseReadOnly says that the server is a replica, or may not write. If it is a replica, the
	// limiter has closed a connection: the address may belong to another server now. After some
	// failures all connections are new.
	CauseReadOnly
	// CauseOutOfMemory says that the server has reached maxmemory, and evicts nothing.
	CauseOutOfMemory
	// CauseCluster says that the cluster is down, or moves the slot of the key, or that the client
	// does not know the cluster yet.
	CauseCluster
	// CauseForbidden says that the user of the connection lacks a right.
	CauseForbidden
	// CauseForeign says that the key has a value that is not a bucket.
	CauseForeign
	// CauseRejected says that the server returned another error.
	CauseRejected
	// CauseUnauthenticated says that the server does not accept the client's user or password.
	CauseUnauthenticated

	causes
)

var causeNames = [causes]string{
	"busy", "open", "timeout", "canceled", "unreachable", "loading", "read-only", "out of memory",
	"cluster", "forbidden", "foreign", "rejected", "unauthenticated",
}

// String returns the name of the constant in lower case, for labels and messages.
func (c Cause) String() string {
	if c < 0 || c >= causes {
		return fmt.Sprintf("Cause(%d)", int(c))
	}
	return causeNames[c]
}

// Error is why the server did not decide a call.
type Error struct {
	Cause Cause
	Err   error // what failed: an *Error for CauseOpen, nil for CauseBusy
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "tb/redis: " + e.Cause.String()
	}
	return fmt.Sprintf("tb/redis: %v: %v", e.Cause, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func contextError(err error) *Error {
	if errors.Is(err, context.Canceled) {
		return &Error{CauseCanceled, err}
	}
	return &Error{CauseTimeout, err}
}

// scriptLine matches the text that Redis 6.2 puts before the error of a command in a script.
var scriptLine = regexp.MustCompile(`^Error running script \(.*?\): (@user_script: ?\d+: )+-?`)

func clientError(err error) *Error {
	e, ok := rueidis.IsRedisErr(err)
	switch {
	case errors.Is(err, rueidis.ErrNoSlot):
		return &Error{CauseCluster, err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{CauseTimeout, err}
	case rueidis.IsParseErr(err):
		return &Error{CauseRejected, err}
	case !ok:
		return &Error{CauseUnreachable, err}
	}
	return replyError(e.Error(), err)
}

func replyError(text string, err error) *Error {
	text = strings.TrimPrefix(scriptLine.ReplaceAllString(text, ""), "ERR ")
	code, _, _ := strings.Cut(text, " ")
	switch code {
	case "LOADING", "MASTERDOWN":
		return &Error{CauseLoading, err}
	case "READONLY", "MISCONF", "NOREPLICAS":
		return &Error{CauseReadOnly, err}
	case "OOM":
		return &Error{CauseOutOfMemory, err}
	case "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "CROSSSLOT":
		return &Error{CauseCluster, err}
	case "NOPERM":
		return &Error{CauseForbidden, err}
	case "WRONGTYPE":
		return &Error{CauseForeign, err}
	case "NOAUTH", "WRONGPASS":
		return &Error{CauseUnauthenticated, err}
	}
	// The errors of a command in a script that the user may not run have no code. The first text is of
	// Redis 7.0 and 6.2, the second of Redis 7.2 and later and of Valkey.
	if strings.HasPrefix(text, "The user executing the script") ||
		strings.HasPrefix(text, "ACL failure in script") {
		return &Error{CauseForbidden, err}
	}
	return &Error{CauseRejected, err}
}
