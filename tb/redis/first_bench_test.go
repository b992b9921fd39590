package redis

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// BenchmarkFirstCalls measures how many of the first 64 calls of a process the failure policy
// decides, with the default timeout and a server that is a round trip away and has not seen the
// script: the median of the processes. The calls come at once, on a key each or on one key, or one
// after another.
func BenchmarkFirstCalls(b *testing.B) {
	const calls = 64
	for _, load := range []string{"keys", "key", "turns"} {
		for _, trip := range []time.Duration{5, 12, 15, 20, 30} {
			trip *= time.Millisecond
			b.Run(load+"/"+trip.String(), func(b *testing.B) {
				s := redistest.Start(b)
				p := startProxy(b, s.Addr)
				p.set(distant(trip))
				operator := dial(b, s)
				var counts []int64
				for range b.N {
					var missed atomic.Int64
					do(b, operator, "SCRIPT", "FLUSH")
					l := startFar(b, p.addr, trip)
					var all sync.WaitGroup
					for i := range calls {
						call := func() {
							key := "a"
							if load == "keys" {
								key = strconv.Itoa(i)
							}
							o, err := l.Decide(b.Context(), key, 1)
							if err != nil {
								b.Error(err)
							}
							if o.By == ByPolicy {
								missed.Add(1)
							}
						}
						if load == "turns" {
							call()
						} else {
							all.Go(call)
						}
					}
					all.Wait()
					l.Close()
					l.client.Close()
					counts = append(counts, missed.Load())
				}
				slices.Sort(counts)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(counts[len(counts)/2]), "missed")
			})
		}
	}
}

// startFar returns a limiter as a new process has it. Its client waits a round trip for each
// connection, beside the replies on it.
func startFar(b *testing.B, addr string, trip time.Duration) *Limiter {
	b.Helper()
	o, err := ParseAddress(addr)
	if err != nil {
		b.Fatal(err)
	}
	o.DialCtxFn = func(
		ctx context.Context, addr string, d *net.Dialer, _ *tls.Config,
	) (net.Conn, error) {
		<-time.After(trip)
		return d.DialContext(ctx, "tcp", addr)
	}
	c, err := NewClient(o)
	if err != nil {
		b.Fatal(err)
	}
	l, err := New(c, ample)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// distant delivers each reply a round trip late, in their order.
func distant(trip time.Duration) func(io.Writer, []byte) error {
	type reply struct {
		w    io.Writer
		text []byte
	}
	var mu sync.Mutex
	var replies []reply
	return func(w io.Writer, text []byte) error {
		mu.Lock()
		defer mu.Unlock()
		replies = append(replies, reply{w, bytes.Clone(text)})
		time.AfterFunc(trip, func() {
			mu.Lock()
			defer mu.Unlock()
			_, _ = replies[0].w.Write(replies[0].text) // the client may have left
			replies = replies[1:]
		})
		return nil
	}
}
