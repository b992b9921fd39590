package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts so
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed clock.lua
var clockText string

//go:embed read.lua
var readText string

//go:embed write.lua
var writeText string

//go:embed take.lua
var takeText string

//go:embed takeeach.lua
var takeEachText string

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
	narrow         = newScript(narrowText + include(takeText, clockText, readText, writeText))
	wide           = newScript(wideText + include(takeText, clockText, readText, writeText))
	narrowTakeEach = newScript(narrowText + include(takeEachText, clockText, readText, writeText))
	wideTakeEach   = newScript(wideText + include(takeEachText, clockText, readText, writeText))
	narrowTakeAll  = newScript(narrowText + include(takeAllText, clockText, readText, writeText))
	wideTakeAll    = newScript(wideText + include(takeAllText, clockText, readText, writeText))
	narrowGiveBack = newScript(narrowText + giveBackText)
	wideGiveBack   = newScript(wideText + giveBackText)
)

// include puts texts into a script in the place of their names. Functions would be slower: Redis
// makes the functions of a script anew in each run.
func include(script, clock, read, write string) string {
	return strings.NewReplacer("-- include clock.lua\n", clock, "-- include read.lua\n", read,
		"-- include write.lua\n", write).Replace(script)
}

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
