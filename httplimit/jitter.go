package httplimit

import (
	"math/bits"

	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// retryAfter returns base and the jitter of this client: 0 to half of base, so that
// clients that were refused together do not come back together. The jitter of a client and path
// is the same in every process.
func (c *call) retryAfter(base int64) int64 {
	if base < 2 { // most waits in seconds
		return base
	}
	var subject string
	for _, claim := range []string{"sub", "user_id", "uid"} {
		if subject = claimText(c.claim(claim)); subject != "" {
			break
		}
	}
	a := c.network().As16()
	h := hash.Add(hash.Empty, c.policy.shared)
	h = hash.Add(h, subject)
	h = hash.Add(h, a[:])
	h = hash.Add(h, c.r.URL.Path)
	return base + offset(hash.Mix(h), base/2)
}

// offset returns 0 to most, for h uniform in 64 bits: the whole part of h/2⁶⁴·(most+1). Each
// value has 2⁶⁴/(most+1) of the hashes, give or take one.
func offset(h uint64, most int64) int64 {
	hi, _ := bits.Mul64(h, uint64(most)+1)
	return int64(hi)
}
