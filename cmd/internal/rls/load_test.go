package rls

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	xds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit/xdstest"
)

// changes is how many changes a service meets under load.
var changes = flag.Int("changes", 50, "changes of the configuration under load")

// load calls a function in some goroutines, and returns a function that waits until each has
// called it again, and one that stops the calls.
func load(call func()) (again, stop func()) {
	const callers = 8
	var tasks sync.WaitGroup
	var calls [callers]atomic.Int64
	stopped, called := make(chan struct{}), make(chan struct{}, callers)
	for i := range callers {
		tasks.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
				}
				call()
				calls[i].Add(1)
				select {
				case called <- struct{}{}:
				default:
				}
			}
		})
	}
	again = func() {
		for i := range callers {
			for before := calls[i].Load(); calls[i].Load() == before; {
				<-called
			}
		}
	}
	return again, func() { close(stopped); tasks.Wait() }
}

// While configurations of a control plane come, each decision is right: a limit of 0 refuses, an
// unlimited descriptor passes, a limit that stays grants as much as it says, and a limit that
// changes between two that grant always grants.
func TestChangesOfXDSUnderLoad(t *testing.T) {
	const granted = 1000
	c := xdstest.NewControl(t, insecure.NewCredentials())
	r := run(t, "", "--xds", c.Address)
	client := ratelimit.NewRateLimitServiceClient(dial(t, r.address))
	send := func(version int) {
		t.Helper()
		text := fmt.Sprint(version)
		asked := c.Send(t, text, &xds.RateLimitConfig{
			Name: "limits", Domain: "d", Descriptors: []*xds.RateLimitDescriptor{
				{Key: "none", RateLimit: yearlyPolicy(0)},
				{Key: "any", RateLimit: &xds.RateLimitPolicy{Unlimited: true}},
				{Key: "same", RateLimit: yearlyPolicy(granted)},
				{Key: "other", RateLimit: yearlyPolicy(1_000_000_000 - uint32(version%2))},
			},
		})
		if asked.GetVersionInfo() != text || asked.GetErrorDetail() != nil {
			t.Errorf("version %d: %v", version, asked)
		}
	}
	<-c.Asked
	send(0)
	var wrong, same, decisions atomic.Int64
	const ok = ratelimit.RateLimitResponse_OK
	again, stop := load(func() {
		for _, key := range []string{"none", "any", "same", "other"} {
			answer, err := client.ShouldRateLimit(t.Context(), request(1, key+"=v"))
			decisions.Add(1)
			passes := answer.GetOverallCode() == ok
			switch {
			case err != nil || key != "same" && passes == (key == "none"):
				wrong.Add(1)
			case key == "same" && passes:
				same.Add(1)
			}
		}
	})
	for version := range *changes {
		again()
		send(version + 1)
	}
	for same.Load() < granted && wrong.Load() == 0 {
		again()
	}
	again()
	stop()
	if wrong.Load() != 0 || same.Load() != granted {
		t.Errorf("of %d decisions, %d are wrong, and %d of the limit of %d are granted",
			decisions.Load(), wrong.Load(), same.Load(), granted)
	}
	t.Logf("%d decisions during %d changes", decisions.Load(), *changes)
}
