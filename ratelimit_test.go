package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

var _ tb.Limiter = (*ratelimit.TokenBucket)(nil)

// limiter has the charges of a TokenBucket as a tb.Charge.
type limiter struct{ *ratelimit.TokenBucket }

func (l limiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

func TestLimiterKeepsTheContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := ratelimit.New[string](limit, opts...)
		return limiter{l}, err
	})
}

// Each method of a type here has the name and the parameters of one of tb/cas.
func TestMethodsAreThoseOfCas(t *testing.T) {
	own := map[string]bool{"TryTake": true}
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[*ratelimit.TokenBucket](), reflect.TypeFor[*cas.TokenBucket]()},
		{reflect.TypeFor[*ratelimit.Bucket](), reflect.TypeFor[*cas.Bucket]()},
	} {
		for i := range pair[0].NumMethod() {
			m := pair[0].Method(i)
			under, found := pair[1].MethodByName(m.Name)
			_, signature, _ := strings.Cut(m.Type.String(), pair[0].String())
			if !own[m.Name] && (!found || !strings.HasSuffix(under.Type.String(), signature)) {
				t.Errorf("%v.%s is %v, want %v", pair[0], m.Name, m.Type, under.Type)
			}
		}
	}
}

func TestBucket(t *testing.T) {
	now := time.Unix(1e9, 0)
	b, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		ratelimit.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct {
		name string
		make func()
		left int
	}{
		{"Allow", func() { b.Allow() }, 9},
		{"AllowN", func() { _, _ = b.AllowN(2) }, 7},
		{"AllowAt", func() { _, _ = b.AllowAt(now, 3) }, 4},
		{"Wait", func() { _ = b.Wait(t.Context(), 1) }, 3},
		{"Reserve", func() { _, _ = b.Reserve(1) }, 2},
		{"AddAt", func() { b.AddAt(now, 4) }, 6},
	} {
		call.make()
		if v := b.Level(); v.Tokens != float64(call.left) || b.Peek().Remaining != call.left-1 {
			t.Errorf("after %s: %+v, want %d tokens", call.name, v, call.left)
		}
	}
	limit := ratelimit.Limit{Capacity: 5, Tokens: 1, Per: time.Second}
	if err := b.SetLimit(limit); err != nil || b.Limit() != limit {
		t.Errorf("SetLimit returned %v, and the limit is %+v", err, b.Limit())
	}
}

func TestTryTake(t *testing.T) {
	l, err := ratelimit.New[float64](ratelimit.Limit{Capacity: 2, Tokens: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		if got := l.TryTake(1); got != want {
			t.Errorf("call %d: %v, want %v", i, got, want)
		}
	}
	if l.TryTake(math.NaN()) {
		t.Error("an invalid key was granted")
	}
}

func TestAllowAll(t *testing.T) {
	users, err := ratelimit.New[netip.Addr](ratelimit.Limit{Capacity: 3, Tokens: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	all, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: 2, Tokens: 1, Per: 10 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	user, _ := users.Charge(netip.IPv6Loopback(), 1)
	total, _ := all.Charge(1)
	for _, want := range []int{1, 0} {
		if d, err := ratelimit.AllowAll(&user, &total); err != nil || !d.Allowed || d.Remaining != want {
			t.Errorf("AllowAll returned %+v, %v; want granted with %d left", d, err, want)
		}
	}
	d, err := ratelimit.AllowAll(&user, &total)
	if err != nil || d.Allowed || d.RetryAfter < 9*time.Hour {
		t.Errorf("AllowAll returned %+v, %v; want refused by the bucket of all", d, err)
	}
	if v, _ := users.Level(context.Background(), netip.IPv6Loopback()); v.Tokens >= 2 {
		t.Errorf("a user has %v tokens after two grants and a refusal, want one", v.Tokens)
	}
	if d, err := ratelimit.AllowAll(); err != nil || !d.Allowed {
		t.Errorf("AllowAll without charges returned %+v, %v", d, err)
	}
}

// A reading of time.Now would be years from the clock of the limiter. AllowAll names the charge,
// and takes nothing. An inert charge comes with its own error, whatever the clock is.
func TestAllowAllNeedsTheClockOfTheProcess(t *testing.T) {
	limit := ratelimit.Limit{Capacity: 3, Tokens: 1, Per: time.Hour}
	clock := ratelimit.WithClock(func() time.Time { return time.Unix(1e9, 0) })
	ours, err1 := ratelimit.NewBucket(limit)
	theirs, err2 := ratelimit.NewBucket(limit, clock)
	keys, err3 := ratelimit.New[string](limit, clock)
	reference, err4 := mutex.New[string](limit, clock)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	one, _ := ours.Charge(1)
	bucket, _ := theirs.Charge(1)
	key, _ := keys.Charge("a", 1)
	inMutex, _ := reference.Charge("a", 1)
	for _, c := range []ratelimit.Charge{&bucket, &key, &inMutex} {
		for i, charges := range [][]ratelimit.Charge{{c}, {&one, c}} {
			d, err := ratelimit.AllowAll(charges...)
			want := fmt.Sprintf("charges[%d]", i)
			bad := new(ratelimit.ConfigError)
			if !errors.As(err, &bad) || bad.Field != want || d.Allowed {
				t.Errorf("AllowAll returned %+v, %v; want an error for %s", d, err, want)
			}
		}
		_, allowed, err := ratelimit.TakeAll(time.Unix(1e9, 0), []ratelimit.Charge{c}, nil)
		if !allowed {
			t.Errorf("%T: TakeAll is refused, %v", c, err)
		}
	}
	if v := ours.Level(); v.Tokens != 3 {
		t.Errorf("%v tokens after calls with an error, want 3", v.Tokens)
	}
	inert, want := theirs.Charge(-5)
	if _, err := ratelimit.AllowAll(&one, &inert); want == nil || !errors.Is(err, want) {
		t.Errorf("an inert charge: %v, want %v", err, want)
	}
}

// Calls that take or read tokens are inlined, so they cost what those of tb/cas cost.
func TestCallsAreInlined(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Skipf("no compiler to ask: %v\n%s", err, out)
	}
	for _, f := range []string{
		"Bucket).Allow", "Bucket).AllowN", "Bucket).AllowAt", "Bucket).Peek", "Bucket).Level",
		"Limiter[go.shape.string]).Allow", "Limiter[go.shape.string]).AllowN",
		"Limiter[go.shape.string]).AllowAt", "Limiter[go.shape.string]).TryTake",
		"Limiter[go.shape.string]).Peek", "Limiter[go.shape.string]).Level",
	} {
		if !strings.Contains(string(out), "(*"+f+"\n") {
			t.Errorf("%s is not inlined", f)
		}
	}
}
