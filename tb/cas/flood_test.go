package cas_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

var everything = flag.Bool("all", false, "flood large tables, too: takes seconds")

// No debt is forgiven while a full bucket is in the table, for any keys, any size of the table
// and any number of processors. So a client that has drained its bucket does not get a new one by
// a flood of keys.
func TestFloodsForgiveNothingWhileABucketIsFull(t *testing.T) {
	sizes := []int{1, 100, 8192}
	if *everything {
		sizes = append(sizes, 100_000)
	}
	for _, procs := range []int{1, 2, 8} {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("procs=%d/keys=%d", procs, size), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				flood(t, size, "IPv4, then IPv6", func(i int) netip.Addr {
					if i < size {
						return netip.AddrFrom4(ipv4(i))
					}
					return netip.AddrFrom16(inOne64(i))
				})
				flood(t, size, "IPv6, then IPv4", func(i int) netip.Addr {
					if i < size {
						return netip.AddrFrom16(inOne64(i))
					}
					return netip.AddrFrom4(ipv4(i))
				})
				flood(t, size, "IPv4 in IPv6, then one /64", func(i int) [16]byte {
					if i < size {
						return netip.AddrFrom4(ipv4(i)).As16()
					}
					return inOne64(i)
				})
				flood(t, size, "a prefix of zeros", func(i int) (key [16]byte) {
					binary.BigEndian.PutUint32(key[12:], uint32(i))
					return key
				})
				flood(t, size, "sequential", func(i int) uint64 { return uint64(i) })
				flood(t, size, "multiples of 2³²", func(i int) uint64 { return uint64(i) << 32 })
				flood(t, size, "a prefix of NULs", func(i int) string {
					return "\x00\x00\x00\x00\x00\x00\x00\x00" + fmt.Sprint(i)
				})
				flood(t, size, "a suffix of NULs", func(i int) string {
					return fmt.Sprint(i) + strings.Repeat("\x00", i%40)
				})
				flood(t, size, "structs", func(i int) route { return route{"", uint32(i)} })
			})
		}
	}
}

type route struct {
	tenant string
	id     uint32
}

// ipv4 returns the i-th address of all.
func ipv4(i int) (b [4]byte) {
	binary.BigEndian.PutUint32(b[:], uint32(i))
	return b
}

// inOne64 returns the i-th address in 2001:db8::/64.
func inOne64(i int) [16]byte {
	b := [16]byte{0x20, 1, 0xd, 0xb8}
	binary.BigEndian.PutUint32(b[12:], uint32(i))
	return b
}

// flood fills a table with the first size keys, whose buckets are full when the attacks begin.
// Then it drains old keys, floods the table with new ones, and drains the old keys again.
func flood[K comparable](t *testing.T, size int, pattern string, key func(i int) K) {
	t.Helper()
	const capacity = 10
	now := time.Unix(0, 0)
	l, err := cas.New[K](tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Second},
		tb.WithMaxKeys(size), tb.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	for i := range size {
		_, _ = l.Allow(context.Background(), key(i))
	}
	now = now.Add(30 * time.Second)

	// These keys come first in the order. Their stamps there are stale.
	old := min(512, size/4)
	want := int64(old * capacity)
	granted := drain(l, old, 1, key)
	fresh := max(1, min(512, size/4))
	granted += drain(l, fresh, 20, func(i int) K { return key(size + i) })
	want += int64(fresh * capacity)
	granted += drain(l, old, 1, key)

	s := l.Stats()
	if granted != want || s.EvictedInDebt != 0 || s.Forgiven != 0 || s.Keys != size {
		t.Errorf("%T, %s: %d granted, want %d, and no debt forgiven; %+v",
			key(0), pattern, granted, want, s)
	}
}

// drain calls each of n keys by four goroutines, twelve times a round, so it takes all that a
// bucket holds. It returns the number of grants.
func drain[K comparable](l *cas.Limiter[K], n, rounds int, key func(i int) K) int64 {
	var granted atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for range rounds {
				for i := g; i < n+g; i++ { // each goroutine calls each key
					for range 3 {
						if d, _ := l.Allow(context.Background(), key(i%n)); d.Allowed {
							granted.Add(1)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	return granted.Load()
}
