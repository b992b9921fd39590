package redis

import (
	"context"
	"crypto/sha1" // Redis names scripts so
	_ "embed"
	"encoding/hex"

	"github.com/redis/rueidis"
)

//go:embed buckets.lua
var bucketsText string

var buckets = newScript(bucketsText)

// script is a text that Redis runs, and the name that Redis gives it.
type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// run runs the script on keys. A server that has never seen the script, or has lost it, gets its
// text. Then loaded is true.
func (s *script) run(
	ctx context.Context, c rueidis.Client, keys []string, argument string,
) (reply rueidis.RedisMessage, loaded bool, err error) {
	n := int64(len(keys))
	do := func(cmd rueidis.Completed) { reply, err = c.Do(ctx, cmd).ToMessage() }
	do(c.B().Evalsha().Sha1(s.sha).Numkeys(n).Key(keys...).Arg(argument).Build())
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		do(c.B().Eval().Script(s.text).Numkeys(n).Key(keys...).Arg(argument).Build())
		loaded = true
	}
	return reply, loaded, err
}
