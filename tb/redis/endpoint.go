package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// NewClient is [rueidis.NewClient], and finds out whether a single address is an endpoint of a
// cluster, as managed clusters have one. Then limiters use the client of the cluster. It asks with
// HELLO, for which a user needs no right.
//
// If a single address cannot be reached, NewClient returns a client and an error. The client
// connects later, and finds out when a reply says that another node has a key. Until it knows the
// cluster, calls on such keys fail with CauseCluster.
//
// The client is for limiters: of a cluster, its methods Do and DoMulti reach all nodes, and the
// others ask the single address.
func NewClient(o rueidis.ClientOption) (rueidis.Client, error) {
	c, err := rueidis.NewClient(o)
	if !o.ForceSingleClient || c == nil {
		return c, err
	}
	o.ForceSingleClient = false
	e := &endpoint{Client: c, option: o}
	if err == nil {
		e.look()
	}
	return e, err
}

// endpoint is the client of one address: of a server, or of the cluster from when that is known.
// All methods are safe for concurrent use.
type endpoint struct {
	rueidis.Client                                // of the address
	option         rueidis.ClientOption           // of the cluster
	cluster        atomic.Pointer[rueidis.Client] // nil if it is not known

	mu     sync.Mutex // is held by the goroutine that looks
	looked time.Time
	closed bool
}

// lookInterval is the least time between two looks for a cluster: the user may lack the rights.
const lookInterval = time.Second

// look connects to the cluster if the address is an endpoint of one, unless another goroutine
// looks.
func (e *endpoint) look() {
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	if e.closed || e.cluster.Load() != nil || time.Since(e.looked) < lookInterval {
		return
	}
	e.looked = time.Now()
	hello, _ := e.Client.Do(context.Background(), e.Client.B().Arbitrary("HELLO").Build()).AsMap()
	mode := hello["mode"]
	if text, _ := mode.ToString(); text != "cluster" {
		return // or a server without HELLO, or one that does not answer any more
	}
	c, err := rueidis.NewClient(e.option)
	if err == nil && c.Mode() == rueidis.ClientModeCluster {
		e.cluster.Store(&c)
	} else if err == nil {
		c.Close()
	}
}

func (e *endpoint) current() rueidis.Client {
	if c := e.cluster.Load(); c != nil {
		return *c
	}
	return e.Client
}

// noSlot is in the slot of a command that the builder of a single server has made. The client of a
// cluster cannot send it.
const noSlot = 1 << 15

// of returns the client that sends a command: the one that has built it.
func (e *endpoint) of(cmd rueidis.Completed) rueidis.Client {
	if cmd.Slot() >= noSlot {
		return e.Client
	}
	return e.current()
}

func (e *endpoint) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	result := e.of(cmd).Do(ctx, cmd)
	err := result.Error()
	if err != nil && e.cluster.Load() == nil && clientError(err).Cause == CauseCluster {
		go e.look()
	}
	return result
}

func (e *endpoint) DoMulti(
	ctx context.Context, multi ...rueidis.Completed,
) []rueidis.RedisResult {
	if len(multi) == 0 {
		return nil
	}
	return e.of(multi[0]).DoMulti(ctx, multi...)
}

func (e *endpoint) B() rueidis.Builder { return e.current().B() }

func (e *endpoint) Mode() rueidis.ClientMode { return e.current().Mode() }

func (e *endpoint) Close() {
	e.Client.Close() // so that a look ends
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if c := e.cluster.Load(); c != nil {
		(*c).Close()
	}
}
