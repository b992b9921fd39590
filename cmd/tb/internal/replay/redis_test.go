package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/redisurl"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

func startRedis(t *testing.T) rueidis.Client {
	t.Helper()
	var u redisurl.URL
	if err := u.UnmarshalText([]byte(redistest.Start(t).Addr)); err != nil {
		t.Fatal(err)
	}
	c, err := u.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// sameInRedis replays inputs with the limiter in memory and with Redis. The reports and the plots
// must be equal but for the evictions, and no key may be left.
func sameInRedis(t *testing.T, c rueidis.Client, o Options, in Input) {
	t.Helper()
	print := func(o Options) string {
		var b bytes.Buffer
		res := drawn(t, o, in)
		res.Report.RefusedInLineOrder = nil // Redis does not decide twice
		for i := range res.Report.Limits {
			res.Report.Limits[i].EvictedFull = 0
		}
		if err := json.NewEncoder(&b).Encode(&res.Report); err != nil {
			t.Fatal(err)
		}
		if len(res.Report.Limits) == 1 {
			if err := res.WriteSVG(&b); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	want := print(o)
	o.Redis = c
	if got := print(o); got != want {
		t.Errorf("%v, burst %v, cost %v: with Redis\n%.1000s\nwant\n%.1000s",
			o.Rates, o.Bursts, o.Cost, got, want)
	}
	noKeys(t, c)
}

func noKeys(t *testing.T, c rueidis.Client) {
	t.Helper()
	n, err := c.Do(context.Background(), c.B().Dbsize().Build()).ToInt64()
	if err != nil || n != 0 {
		t.Errorf("%d keys are left in Redis, %v", n, err)
	}
}

func TestSampleIsDecidedAlikeInRedis(t *testing.T) {
	c := startRedis(t)
	in := Input{"sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(3000)), nil
	}}
	o := options(t, "5", 10)
	sameInRedis(t, c, o, in)
	o.Rates = append(o.Rates, mustRate(t, "7/h"), mustRate(t, "1000/s"))
	o.Cost = mustCost(t, "bytes/KiB")
	sameInRedis(t, c, o, in)
}

func TestRealLogIsDecidedAlikeInRedis(t *testing.T) {
	in := realInput(t)
	if testing.Short() {
		t.Skip("it makes 80,000 trips")
	}
	c := startRedis(t)
	for _, limit := range realRefusals {
		o := options(t, limit.rate, limit.burst)
		o.Cost = mustCost(t, limit.cost)
		sameInRedis(t, c, o, in)
	}
	o := options(t, "5", 10)
	o.Redis = c
	for _, want := range realRefusals[:2] {
		o.Rates, o.Bursts = []Rate{mustRate(t, want.rate)}, []Burst{want.burst}
		checkRefusals(t, "redis", replay(t, o, in).Report.Limits[0], want)
	}
}

func TestInterruptRemovesTheKeys(t *testing.T) {
	c := startRedis(t)
	o := options(t, "5", 10)
	o.Redis = c
	ctx, cancel := context.WithCancel(t.Context())
	written, log := 0, samplelog.New(10_000)
	res, err := Run(ctx, o, accesslog.Schema{}, []Input{{"sample", func() (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(b []byte) (int, error) {
			if written > 100_000 {
				cancel()
				return 0, ctx.Err()
			}
			n, err := log.Read(b)
			written += n
			return n, err
		})), nil
	}}})
	if err != nil || !res.Report.Interrupted || res.Report.Requests == 0 {
		t.Errorf("%v, interrupted %v, %d requests", err, res.Report.Interrupted, res.Report.Requests)
	}
	noKeys(t, c)
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
