package redis

import (
	"context"
	"crypto/sha1" // Redis names scripts so
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed buckets.lua
var bucketsText string

var buckets = newScript(bucketsText)

type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// run runs the script on keys. A server gets its text, unless the server has replied before and has
// not lost it since. ctx ends for a lone call only, because the client may forget a command that is
// still in its queue then.
func (l *shared) run(
	ctx context.Context, known bool, names []string, argument []byte,
) (reply, *Error) {
	c := l.client
	n, arg := int64(len(names)), string(argument)
	build := c.B()
	if l.isCluster() && slices.ContainsFunc(names, func(n string) bool {
		return l.slot(n) != l.slot(names[0])
	}) { // the client became one of a cluster after the batch was filled, and would panic
		return reply{}, &Error{CauseCluster, rueidis.ErrNoSlot}
	}
	l.inFlight.Add(1)
	defer l.inFlight.Add(-1)
	l.commands.Add(1)
	var result rueidis.RedisResult
	if known {
		result = c.Do(ctx, build.Evalsha().Sha1(l.script.sha).Numkeys(n).Key(names...).Arg(arg).Build())
		if e, ok := rueidis.IsRedisErr(result.Error()); ok && e.IsNoScript() {
			l.commands.Add(1)
			l.loaded.Add(1)
			known = false
		}
	}
	if !known {
		result = c.Do(ctx, build.Eval().Script(l.script.text).Numkeys(n).Key(names...).Arg(arg).Build())
	}
	text, err := result.ToString()
	if err != nil {
		return reply{}, l.failure(ctx, names[0], clientError(err))
	}
	r, e := parse(text, len(names))
	if r.failure != nil {
		r.failure = l.failure(ctx, names[0], r.failure)
	}
	return r, e
}

// failure returns e, the error of a command on a key. If a replica has answered, it closes a
// connection: the replica may have been the master when the connection was made, and the next
// connection may find the new one. The client does not say which of its connections that was, so it
// may take several failures until all are new.
func (l *shared) failure(ctx context.Context, name string, e *Error) *Error {
	if e.Cause == CauseReadOnly && strings.Contains(e.Err.Error(), "READONLY") {
		// The second command waits until the server has closed the connection.
		quit := func() rueidis.Completed { return l.client.B().Arbitrary("QUIT").Keys(name).Build() }
		l.client.DoMulti(ctx, quit(), quit())
	}
	return e
}
