package suggest

import (
	"math"
	"math/bits"
)

// swing is a high of a deficit and the low after it, until later ones complete it.
type swing struct{ high, low uint64 }

// swings bounds how many tokens the buckets of a rate would refuse, for every capacity at once.
// The package comment has the theory.
type swings struct {
	cost uint64 // of each request, in units
	grid uint64 // divides a token, and each supply that did not fill its bucket
	bins []bin
	over bool // a deficit was too great to be kept

	stacks [][]swing // of the curves, each swing within the one before; the first is not used
	unused []uint32  // indexes of stacks
}

func newSwings(cost uint64) *swings {
	return &swings{cost: cost, grid: finest, stacks: make([][]swing, 1)}
}

// bin holds the swings of one range of sizes.
type bin struct {
	count  uint64
	hi, lo uint64 // the sum of the sizes, in units
}

// Sizes up to exactBins tokens have a bin for each whole number of tokens, and greater ones
// exactBins/2 bins for each power of two. A size on an edge is in the lower bin.
const (
	exactBits = 10
	exactBins = 1 << exactBits
)

// binOf returns the index of the bin of a size in tokens, rounded up and not 0.
func binOf(tokens uint64) int {
	shift := max(0, bits.Len64(tokens-1)-exactBits)
	return shift*(exactBins/2) + int((tokens-1)>>shift)
}

// edgeOf returns the tokens below a bin.
func edgeOf(bin int) uint64 {
	shift := max(0, bin/(exactBins/2)-1)
	return uint64(bin-shift*(exactBins/2)) << shift
}

// record counts a complete swing.
func (s *swings) record(size uint64) {
	if size == 0 {
		return
	}
	i := binOf((size + finest - 1) / finest)
	for i >= len(s.bins) {
		s.bins = append(s.bins, bin{})
	}
	s.bins[i].add(bin{count: 1, lo: size})
}

func (b *bin) add(other bin) {
	var carry uint64
	b.count += other.count
	b.lo, carry = bits.Add64(b.lo, other.lo, 0)
	b.hi += other.hi + carry
}

// add follows the deficit of a curve from high over low, with a supply in between, to its present
// value.
func (s *swings) add(c *curve, high, low, supplied uint64) {
	s.over = s.over || c.deficit == most
	if low == 0 {
		s.end(c, high)
		return
	}
	s.keepGrid(supplied)
	if c.open == 0 {
		if supplied == 0 || c.deficit >= high { // most requests: the swing is complete at once
			s.record(high - low)
			return
		}
		c.open = s.newStack()
	}
	stack := s.stacks[c.open]
	if supplied > 0 {
		for n := len(stack); n > 0 && low <= stack[n-1].low; n = len(stack) {
			s.record(high - stack[n-1].low)
			high, stack = stack[n-1].high, stack[:n-1]
		}
		stack = append(stack, swing{high, low})
	}
	for n := len(stack); n > 0 && c.deficit >= stack[n-1].high; n = len(stack) {
		s.record(stack[n-1].high - stack[n-1].low)
		stack = stack[:n-1]
	}
	s.stacks[c.open] = stack
	if len(stack) == 0 {
		s.release(c)
	}
}

// end completes the swings of a curve whose bucket is full after its high.
func (s *swings) end(c *curve, high uint64) {
	if c.open != 0 {
		stack := s.stacks[c.open]
		for n := len(stack); n > 0; n-- {
			s.record(high - stack[n-1].low)
			high = stack[n-1].high
		}
		s.release(c)
	}
	s.record(high)
}

func (s *swings) newStack() uint32 {
	if n := len(s.unused); n > 0 {
		i := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return i
	}
	s.stacks = append(s.stacks, nil)
	return uint32(len(s.stacks) - 1)
}

func (s *swings) release(c *curve) {
	s.stacks[c.open] = s.stacks[c.open][:0]
	s.unused = append(s.unused, c.open)
	c.open = 0
}

// keepGrid makes the grid divide a supply.
func (s *swings) keepGrid(supplied uint64) {
	for supplied != 0 && s.grid > 1 {
		if supplied %= s.grid; supplied != 0 {
			s.grid, supplied = supplied, s.grid
		}
	}
}

// lost returns an upper bound of the requests that a capacity refuses: the one that is above the
// lower edge of a bin by the cost of a request. sum has the swings from that bin on.
func (s *swings) lost(from int, sum *bin) uint64 {
	hi, lo := bits.Mul64(sum.count, edgeOf(from)*finest+s.grid)
	lo, borrow := bits.Sub64(sum.lo, lo, 0)
	hi, _ = bits.Sub64(sum.hi, hi, borrow)
	if hi >= s.cost {
		return math.MaxUint64
	}
	n, _ := bits.Div64(hi, lo, s.cost)
	return n
}

// burst returns a capacity that refuses at most a number of requests, None if there is none. Of the
// edges of bins, it is the least for which lost says so.
func (s *swings) burst(refused uint64) uint64 {
	if s.over {
		return None
	}
	sum, i := bin{}, len(s.bins)
	for ; i > 0; i-- {
		sum.add(s.bins[i-1])
		if s.lost(i-1, &sum) > refused {
			break
		}
	}
	return min(edgeOf(i)+s.cost/finest, None)
}
