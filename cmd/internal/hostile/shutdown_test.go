package hostile

import (
	"bufio"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

var shutdowns = flag.Int("shutdowns", 1, "how many times TestShutdownLosesNothing stops the proxy")

// clients send requests over connections that they reuse as long as they may.
type clients struct {
	address        string
	answered, lost atomic.Int64
	firstLoss      atomic.Value
	group          sync.WaitGroup
}

// run sends requests until the proxy takes no more connections.
func (c *clients) run() {
	for {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				c.lose(err)
			}
			return
		}
		err = c.use(conn)
		conn.Close()
		if err != nil {
			c.lose(err)
		}
	}
}

// use sends requests on one connection until it is announced that the connection closes.
func (c *clients) use(conn net.Conn) error {
	in := bufio.NewReader(conn)
	for {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			return err
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return err
		}
		if r.StatusCode != http.StatusOK {
			return errors.New(r.Status)
		}
		c.answered.Add(1)
		if r.Close {
			return nil
		}
	}
}

// runHTTP2 sends requests over HTTP/2 until the proxy takes no more connections.
func (c *clients) runHTTP2(client *http.Client) {
	defer client.CloseIdleConnections()
	for {
		r, err := client.Get("http://" + c.address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		if err != nil {
			c.lose(err)
			return
		}
		c.answered.Add(1)
	}
}

func (c *clients) lose(err error) {
	c.lost.Add(1)
	c.firstLoss.CompareAndSwap(nil, err.Error())
}

// SIGTERM under load loses no request, also while SIGHUP comes again and again.
func TestShutdownLosesNothing(t *testing.T) {
	flag := upstream(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	for i := range *shutdowns {
		policy := "--policy=" + testkit.File(t, "policy.json", generous)
		// A connection whose client or proxy waits for a processor all this time may be closed.
		p := start(t, flag, policy, "--shutdown-delay=1s", "--h2c")
		c := &clients{address: p.proxy}
		for n := range 50 {
			if n%5 == 0 {
				client := overHTTP2(t)
				c.group.Go(func() { c.runHTTP2(client) })
				continue
			}
			c.group.Go(c.run)
		}
		await(t, "load", func() bool { return c.answered.Load() > 500 })
		hangups := make(chan struct{})
		go func() {
			defer close(hangups)
			for range time.Tick(time.Millisecond) {
				if i%2 == 0 || p.Process.Signal(syscall.SIGHUP) != nil {
					return
				}
			}
		}()
		p.stop(t)
		c.group.Wait()
		<-hangups
		if n := c.lost.Load(); n > 0 {
			t.Errorf("shutdown %d: %d of %d requests lost, the first: %v", i, n, c.answered.Load(),
				c.firstLoss.Load())
		}
	}
}

// generous is a policy that refuses nothing.
const generous = `{"name": "r", "limit_keys": ["ip:address"],
	"algorithm_config": {"tokens_per_second": 1e9, "burst": 1e9}}`
