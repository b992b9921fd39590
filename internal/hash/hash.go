// Package hash has hashes that are the same in every process and version.
package hash

// Empty is the hash of nothing, to which Add adds.
const Empty uint64 = 14695981039346656037

// Add adds s and its length to a hash, by FNV-1a. The length keeps one part from the next.
// Mix must follow the last part.
func Add[T string | []byte](h uint64, s T) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return (h ^ uint64(len(s))) * prime
}

// Mix makes every bit of h depend on every other bit, because in FNV-1a the last bytes hardly
// reach the high bits. It is the finalizer of MurmurHash3.
func Mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
