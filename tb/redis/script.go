package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts so
	_ "embed"
	"encoding/hex"

	"github.com/redis/rueidis"
)

//go:embed bucket.lua
var bucketText string

//go:embed take.lua
var takeText string

//go:embed takeall.lua
var takeAllText string

//go:embed giveback.lua
var giveBackText string

//go:embed narrow.lua
var narrowText string

//go:embed wide.lua
var wideText string

// The scripts have the arithmetic that their limits need.
var (
	narrow         = newScript(narrowText + bucketText + takeText)
	wide           = newScript(wideText + bucketText + takeText)
	narrowTakeAll  = newScript(narrowText + bucketText + takeAllText)
	wideTakeAll    = newScript(wideText + bucketText + takeAllText)
	narrowGiveBack = newScript(narrowText + giveBackText)
	wideGiveBack   = newScript(wideText + giveBackText)
)

// script is a text that Redis runs, and the name that Redis gives it.
type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// run runs the script on keys. A server that has never seen the script, or has lost it, gets its
// text. Then loaded is true.
func (s *script) run(
	ctx context.Context, c rueidis.Client, keys []string, args ...string,
) (reply rueidis.RedisMessage, loaded bool, err error) {
	do := func(cmd rueidis.Completed) { reply, err = c.Do(ctx, cmd).ToMessage() }
	do(c.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		do(c.B().Eval().Script(s.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
		loaded = true
	}
	return reply, loaded, err
}
