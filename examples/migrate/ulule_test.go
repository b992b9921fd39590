package migrate

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ulule/limiter/v3"
	mgin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

func beforeUlule(store limiter.Store, next http.Handler) (http.Handler, error) {
	rate, err := limiter.NewRateFromFormatted("10-M")
	if err != nil {
		return nil, err
	}
	handler := stdlib.NewMiddleware(limiter.New(store, rate)).Handler(next)
	return handler, nil
}

func afterUlule(next http.Handler) (http.Handler, error) {
	limiter, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name:  "per-address",
		Keys:  []string{"ip:address"},
		Limit: ratelimit.Limit{Capacity: 10, Tokens: 10, Per: time.Minute},
	}))
	if err != nil {
		return nil, err
	}
	handler := limiter.Middleware(next)
	return handler, nil
}

func TestUluleInGin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gin.SetMode(gin.ReleaseMode)
		ok := func(c *gin.Context) { c.Status(http.StatusOK) }
		store, rate := newStore(), limiter.Rate{Period: time.Minute, Limit: 10}
		before := gin.New()
		{
			router := before
			router.Use(mgin.NewMiddleware(limiter.New(store, rate)))
		}
		before.GET("/", ok)
		limiter := httplimit.PerAddress(10, 10.0/60)
		after := gin.New()
		{
			router := after
			router.Use(func(c *gin.Context) {
				if _, granted := limiter.Decide(c.Writer, c.Request); !granted {
					c.Abort()
				}
			})
		}
		after.GET("/", ok)
		wants(t, "burst", granted(t, before, 15), 10, granted(t, after, 15), 10)
	})
}

// newStore is memory.NewStore without the goroutine that removes old counters, which never ends.
func newStore() limiter.Store { return memory.NewStoreWithOptions(limiter.StoreOptions{}) }

// A client behind a proxy that appends to X-Forwarded-For sends the first addresses itself.
func TestUluleTrustsTheFirstAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := limiter.Rate{Period: time.Minute, Limit: 10}
		trusting := limiter.New(newStore(), rate, limiter.WithTrustForwardHeader(true))
		before := stdlib.NewMiddleware(trusting).Handler(served)
		after := ruleHandler(httplimit.Rule{
			Keys:  []string{"ip:address"},
			Limit: ratelimit.Limit{Capacity: 10, Tokens: 10, Per: time.Minute},
		}, httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		}))
		var b, a int
		for i := range 50 {
			list := fmt.Sprintf("X-Forwarded-For: 203.0.113.%d, 198.51.100.7", i)
			b += granted(t, before, 1, list)
			a += granted(t, after, 1, list)
		}
		wants(t, "spoofed addresses", b, 50, a, 10)
	})
}

// TestUluleCalls runs both columns of the table.
func TestUluleCalls(t *testing.T) {
	ctx := t.Context()
	synctest.Test(t, func(t *testing.T) {
		instance := limiter.New(newStore(), limiter.Rate{Period: time.Minute, Limit: 10})
		limiter, err := ratelimit.New[string](ratelimit.Limit{Capacity: 10, Tokens: 10, Per: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		key := "ada"
		c, err := instance.Get(ctx, key)
		d, errAfter := limiter.Allow(ctx, key)
		wants(t, "Get", !c.Reached, true, d.Allowed, true)
		wants(t, "remaining", c.Remaining, 9, int64(d.Remaining), 9)
		wants(t, "error", err, nil, errAfter, nil)

		c, err = instance.Increment(ctx, key, 4)
		d, errAfter = limiter.AllowN(ctx, key, 4)
		wants(t, "Increment", c.Remaining, 5, int64(d.Remaining), 5)
		wants(t, "error", err, nil, errAfter, nil)

		c, err = instance.Peek(ctx, key)
		level, errAfter := limiter.Level(ctx, key)
		wants(t, "Peek", c.Remaining, 5, int64(level.Tokens), 5)
		wants(t, "error", err, nil, errAfter, nil)

		// A refused call counts before, and takes nothing after.
		c, _ = instance.Increment(ctx, key, 6)
		d, _ = limiter.AllowN(ctx, key, 6)
		wants(t, "too much", c.Reached, true, !d.Allowed, true)
		c, _ = instance.Get(ctx, key)
		d, _ = limiter.Allow(ctx, key)
		wants(t, "after a refusal", !c.Reached, false, d.Allowed, true)

		c, err = instance.Reset(ctx, key)
		limiter.Reset(key)
		level, errAfter = limiter.Level(ctx, key)
		wants(t, "Reset", c.Remaining, 10, int64(level.Tokens), 10)
		wants(t, "error", err, nil, errAfter, nil)
	})
}
