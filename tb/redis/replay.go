package redis

import (
	"context"
	_ "embed"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

//go:embed replay.lua
var replayText string

// The scripts of replays.
var (
	narrowReplay = newScript(replayText + narrow.text)
	wideReplay   = newScript(replayText + wide.text)
)

// Replay makes calls of the past, such as the requests of an access log, on the buckets of a
// server. It decides as tb/mutex does with a clock that shows the times of the calls, and whose
// first reading is the start of 1970. Use it to see what a limit would have done, and whether a
// server decides exactly.
//
// Real time does not matter to a replay. A call may be earlier than the call before it. The buckets
// stay for a day of real time, or until Remove. All methods are safe for concurrent use.
type Replay struct {
	settings
	client rueidis.Client
	layout layout
}

// NewReplay returns a replay with a bucket of the given limit for each key. The prefix is the text
// before the keys in Redis, without braces. Nothing else may have keys with it. NewReplay returns a
// *tb.ConfigError if the limit or the prefix is out of range, as New does.
func NewReplay(client rueidis.Client, limit tb.Limit, prefix string) (*Replay, error) {
	if client == nil {
		return nil, &tb.ConfigError{Field: "client", Value: "nil", Range: "a client"}
	}
	m, err := newLayout(limit)
	if err != nil {
		return nil, err
	}
	if prefix == "" {
		return nil, &tb.ConfigError{Field: "prefix", Value: `""`, Range: "a text without braces"}
	}
	s, err := apply([]Option{WithPrefix(prefix)})
	if err != nil {
		return nil, err
	}
	if m.script == narrow {
		m.script = narrowReplay
	} else {
		m.script = wideReplay
	}
	return &Replay{settings: s, client: client, layout: m}, nil
}

// AllowCostAt takes a decimal number of tokens of key's bucket, or none, at a time from 1970 to
// 2254. It cuts the time off to microseconds. It rounds the cost as Limiter.AllowCost does, and
// returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It returns a
// *tb.ConfigError if the time is out of range, and an *Error if the server did not decide.
func (r *Replay) AllowCostAt(
	ctx context.Context, at time.Time, key string, cost float64,
) (tb.Decision, error) {
	if !(cost > 0 && cost <= math.MaxFloat64) { // NaN fails both
		return tb.Decision{}, tb.ErrInvalidCost
	}
	if year := at.UTC().Year(); year < 1970 || year > 2254 {
		return tb.Decision{}, &tb.ConfigError{Field: "at", Value: at, Range: "1970 to 2254"}
	}
	now := at.UnixMicro()
	costs := []item{{r.layout.unitsOfCost(cost), noDeadline}}
	reply, _, err := r.layout.script.run(ctx, r.client, []string{r.name(key)},
		rueidis.BinaryString(r.layout.argument(costs)), strconv.FormatInt(now, 10))
	if err != nil {
		return tb.Decision{}, clientError(err)
	}
	text, err := reply.ToString()
	if err != nil {
		return tb.Decision{}, &Error{Rejected, err}
	}
	s, ok := r.layout.parse(text, costs)
	if !ok {
		return tb.Decision{}, &Error{Rejected, errors.New("the reply has another form")}
	}
	return r.layout.take(&s, costs[0].cost), nil
}

// inGlob escapes the characters that have a meaning in a pattern of SCAN.
var inGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// Remove removes all keys with the prefix. It needs the right to SCAN, which reads the names of all
// keys of the server.
func (r *Replay) Remove(ctx context.Context) error {
	for _, node := range r.client.Nodes() {
		for cursor := uint64(0); ; {
			scan := node.B().Scan().Cursor(cursor).Match(inGlob.Replace(r.prefix) + "*").Count(1000)
			page, err := node.Do(ctx, scan.Build()).AsScanEntry()
			if err != nil {
				return clientError(err)
			}
			for _, err := range rueidis.MDel(r.client, ctx, page.Elements) {
				if err != nil {
					return clientError(err)
				}
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
	return nil
}
