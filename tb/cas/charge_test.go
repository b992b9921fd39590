package cas_test

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// A caller that keeps the charges and their slices allocates nothing for a call on several
// buckets: granted, refused, or undone.
func TestChargesAllocateNothing(t *testing.T) {
	type user struct {
		tenant string
		id     int
	}
	generous := tb.Limit{Capacity: 1 << 30, Tokens: 1000, Per: time.Second}
	users, err := cas.New[user](generous)
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := cas.New[string](generous)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		limit   tb.Limit
		granted bool
	}{
		{"granted", generous, true},
		{"refused", tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}, false},
	} {
		bucket, err := cas.NewBucket(tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			user      cas.Charge[user]
			tenant    cas.Charge[string]
			all       cas.BucketCharge
			charges   [3]tb.Charge
			decisions [3]tb.Decision
		}
		kept.charges = [...]tb.Charge{&kept.user, &kept.tenant, &kept.all}
		take := func() bool {
			kept.user, _ = users.Charge(user{"acme", 7}, 1)
			kept.tenant, _ = tenants.Charge("acme", 0.5)
			kept.all, _ = bucket.Charge(1)
			allowed, err := tb.TakeAll(time.Now(), kept.charges[:], kept.decisions[:])
			if err != nil {
				t.Fatal(err)
			}
			return allowed
		}
		take() // adds the keys
		if n := testing.AllocsPerRun(100, func() {
			if take() != tt.granted {
				t.Fatalf("%s: %+v", tt.name, kept.decisions)
			}
		}); n != 0 {
			t.Errorf("%s: TakeAll allocates %v times, want 0", tt.name, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			kept.user.Take(time.Now())
			kept.user.Undo()
			kept.all.Take(time.Now())
			kept.all.Undo()
		}); n != 0 {
			t.Errorf("%s: Undo allocates %v times, want 0", tt.name, n)
		}
	}
}
