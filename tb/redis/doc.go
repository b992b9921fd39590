// Package redis shares token buckets between processes, in a Redis or Valkey server. It decides
// what package tb/mutex decides, bit for bit, by the clock of the server, in one round trip or
// none.
//
// A bucket is a string of 28 bytes, or of 35 if it has changed its limit, which expires when the
// bucket is full. A server needs the commands EVALSHA, EVAL, TIME, GET, SET with PXAT, PTTL and
// DEL: Redis 6.2 or later, or any Valkey.
//
// # Client
//
// A limiter works with any client of rueidis. These options suit it:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress:       []string{"127.0.0.1:6379"},
//		DisableCache:      true,        // a limiter caches nothing in the client
//		ForceSingleClient: true,        // without a cluster: see below
//		ConnWriteTimeout:  250 * time.Millisecond,
//		Dialer: net.Dialer{Timeout: 500 * time.Millisecond, KeepAlive: 250 * time.Millisecond},
//	})
//	...
//	limiter, err := redis.New(client, tb.Limit{Capacity: 20, Tokens: 10, Per: time.Second})
//	...
//	decision, err := limiter.Allow(ctx, key)
//
// [ParseAddress] reads options from host:port or a URL.
//
// With these times, the client finds within 0.75 s that a connection delivers nothing, and makes
// another one. With the default times it takes 11 s.
//
// With ForceSingleClient, NewClient returns a client also if the server does not answer yet. Then
// its error is not nil, and the client connects later.
//
// # Rights
//
// With the default prefix, a limiter needs these rights of an ACL user:
//
//	resetchannels ~tb:* -@all +evalsha +eval +time +get +set +pttl +del
//
// The client of a cluster also needs +cluster|slots, +cluster|shards and +asking. Without a
// cluster, set ForceSingleClient: otherwise the client asks for the cluster.
//
// # Cluster
//
// A bucket is on the master of its key's slot. A limiter works while slots move, and after a
// failover. Replication is asynchronous: grants that had not reached the new master are forgotten,
// so up to their cost may be granted again. [TakeAll] takes several buckets of one hash tag at
// once: see [WithTag].
//
// # Deadlines
//
// A call returns at its timeout, although its command may have been sent. If its context is
// cancelled it returns at once, unless its command is the only one under way: then it returns with
// the reply, or at its timeout. The command carries its deadline, in the time of the server's
// clock. If it reaches the server later, it takes nothing. The first call of a limiter learns that
// clock, which takes a second round trip. After a long pause a call may take one too, because the
// clocks may have moved apart meanwhile.
//
// A limiter has at most 256 commands under way. A call that needs one more waits until one
// returns.
//
// # Limits
//
// The value of a bucket has the limit under which it was written. A call by another limit converts
// it: after [Limiter.SetLimit], by a limiter of another [Limiter.Tier], or by a process with
// another configuration. The bucket keeps its tokens, but not more than the new capacity, and its
// debt. (In tb/mutex a key that changes its tier does the same.) The first call converts the
// bucket, also if it is refused; Peek converts it only if it refuses, [Limiter.Level] never. A full
// bucket has no key, and is full under the new limit too. The key of a bucket that was converted
// stays at least as long as under the limits before, so that no client gains tokens from changes to
// and fro. Limiters with leases of different lengths should not share buckets.
//
// # Reservations
//
// [Limiter.Reserve], [Limiter.Wait] and [Charge.MayWait] put a bucket in debt. Slots are in the
// time of the server's clock, in the order in which it has decided. A process that ends leaves what
// it has reserved as spent.
//
// # Batches
//
// A limiter has one command under way for each key. Calls on that key wait for it, and then share
// the next one, in the order in which they came. Without a cluster, a limiter has at most 8 such
// commands under way. Calls on other keys wait for one of them to return, and then share one
// command, up to 32 keys and 128 costs. With fewer than 8 under way, a call on an idle key does not
// wait. The server decides all calls of a command at one instant, while each of them is under way.
// Calls of [TakeAll] share the commands of the limiter of their first charge, and wait for no other
// call on their keys.
//
// A caller whose context ends before its command was sent takes nothing. If the command was sent,
// the call takes its tokens, unless its deadline passes first. An error of a command that concerns
// one key, such as a value that is not a bucket, is an error of the calls on that key only.
//
// A proxy that distributes the keys over several servers, and sends a script to the server of its
// first key, looks like one server. Then [WithoutBatching] is needed, and [TakeAll] needs hash
// tags.
//
// # Local refusals
//
// A reply shows the bucket, and as a rule other clients only take from it. So the limiter knows
// until when the bucket cannot pay a cost, and refuses such a call by itself. The server would
// refuse it too, with the exceptions that [WithMaxDenial] lists. RetryAfter and Remaining are what
// the server would return if no other process, and no [TakeAll] of several buckets, had taken
// tokens since the reply. They count from the server's time in the reply, plus the local time since
// the reply came.
//
// # Failures
//
// If the server does not decide a call, the policy of [WithPolicy] does, and the error is nil.
// After 5 failures in a row, or 10 among 20 commands, a breaker opens, and the policy decides at
// once. All that is under way when a failure is seen counts once. Then one call in each 250 ms is
// sent as a probe. When a probe succeeds, 8 calls may be under way, then 16, 32 and so on. Errors
// that concern a key, a right or a write do not open the breaker. In a cluster, each sixteenth of
// the slots has a breaker.
//
// docs/redis.md has the bound in each failure, and which policy to choose.
package redis
