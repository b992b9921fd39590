package httplimit

import "math/bits"

// retryAfter returns base seconds and the jitter of this client: 0 to half of base, the
// same for the same client and path in every process, so that those who were refused
// together do not come back together.
func (c *call) retryAfter(base int64) int64 {
	var subject string
	for _, claim := range []string{"sub", "user_id", "uid"} {
		if subject = claimText(c.claim(claim)); subject != "" {
			break
		}
	}
	a := c.network().As16()
	h := fnv(offset64, c.l.salt)
	h = fnv(h, subject)
	h = fnv(h, a[:])
	h = fnv(h, c.r.URL.Path)
	return base + offset(mix(h), base/2)
}

// offset returns 0 to most, for h uniform in 64 bits: the whole part of h/2⁶⁴·(most+1).
// Each value has 2⁶⁴/(most+1) of the hashes, one more or less.
func offset(h uint64, most int64) int64 {
	hi, _ := bits.Mul64(h, uint64(most)+1)
	return int64(hi)
}

const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

// fnv is FNV-1a of s and its length, on top of h. The length keeps parts apart.
func fnv[T string | []byte](h uint64, s T) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime64
	}
	return (h ^ uint64(len(s))) * prime64
}

// mix makes every bit of h depend on every other. In FNV the last bytes hardly reach the
// high bits, which are those that offset looks at. This is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
