// Package redis shares token buckets between processes, in a Redis or Valkey server. It decides
// what package tb/mutex decides, bit for bit, by the clock of the server, in one round trip or
// none.
//
//	option, err := redis.ParseAddress("localhost:6379")
//	...
//	client, err := redis.NewClient(option)
//	...
//	limiter, err := redis.New(client, tb.Limit{Capacity: 20, Tokens: 10, Per: time.Second})
//	...
//	decision, err := limiter.Allow(ctx, key)
//
// A limiter works with any client of rueidis. docs/redis.md has the options that suit it, the
// servers, the rights that a user needs, the bound in each failure, and which failure policy to
// choose.
//
// # Deadlines
//
// A call returns at its timeout, although its command may have been sent. If its context is
// cancelled it returns at once, unless its command is the only one under way or renews a lease:
// then it returns with the reply, or at its timeout. The command carries its deadline, in the time
// of the server's clock. If it reaches the server later, it takes nothing. Cancel, Settle and Reset
// have no deadline there: they may happen late. So may all calls until the first reply, which shows
// that clock. After a long pause a call may take a second round trip, because the clocks may have
// moved apart meanwhile.
//
// A limiter has at most 256 commands under way, in a cluster 16 for each sixteenth of the slots. A
// call that needs one more waits until one returns.
//
// # Batches
//
// A limiter has one command under way for each key. Calls on that key wait for it, and then share
// the next one, in the order in which they came, up to a call with another limit. Without a
// cluster, a limiter has at most 8 such commands under way. Calls on other keys wait for one of
// them to return, and then share one command, to which no call is added once it has 32 keys or 128
// costs. With fewer than 8 under way, a call on an idle key does not wait. The server decides all
// calls of a command at one instant, while each of them is under way. Calls of [TakeAll] share the
// commands of the limiter of their first charge, and wait for no other call on their keys.
//
// A caller whose context ends before its command was sent takes nothing. If the command was sent,
// the call takes its tokens, unless its deadline passes first. An error of a command that concerns
// one key, such as a value that is not a bucket, is an error of the calls on that key only.
package redis
