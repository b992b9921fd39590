package redis

import (
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// slots are those of a Redis Cluster, which a limiter divides into ranges.
const (
	slots  = 1 << 14
	ranges = 16
)

// node is what limiters have learned of a server. The limiter of a cluster does not know which
// server has a key. So it has a node for each range of slots, and a master that is down opens the
// breakers of its own ranges only.
type node struct {
	breaker breaker
	offset  offset
}

// calm is how long no command must have failed for a call to be sent by its caller. It is the
// longest time in which rueidis connects with its default options: a caller that waits for a
// connection which another call has begun would wait for it after its timeout, too.
const calm = 5 * time.Second

// link is what the limiters of a Store have in common, because they have one client: what they know
// of its servers, and the counts of its commands. All methods are safe for concurrent use.
type link struct {
	nodes   [ranges]node // without a cluster, only the first one
	failed  atomic.Int64 // the local time of the last failure, or 0
	outages outages

	commands, loaded, stale atomic.Uint64
	inFlight                atomic.Int64
}

// origin is when local times begin. All links have the same one, because a command of one limiter
// may decide buckets of others, which remember when they were seen.
var origin = time.Now()

// local returns the time since origin, in µs of the monotonic clock.
func (*link) local() int64 { return time.Since(origin).Microseconds() }

func (k *link) isCalm() bool {
	t := k.failed.Load()
	return t == 0 || k.local()-t > calm.Microseconds()
}

// isCluster reports whether the client is the client of a cluster, which one of NewClient may
// become.
func (l *shared) isCluster() bool { return l.client.Mode() == rueidis.ClientModeCluster }

func (l *shared) node(key string) *node {
	if !l.isCluster() {
		return &l.nodes[0]
	}
	return &l.nodes[l.slot(l.name(key))/(slots/ranges)]
}

func (l *shared) slot(name string) int {
	get := l.client.B().Get().Key(name).Build()
	return int(get.Slot())
}
