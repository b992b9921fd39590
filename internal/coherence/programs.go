package coherence

// Times in nanoseconds of a call on one hot key, as BENCHMARKS.md has them: what precedes the
// bucket (the clock and the look-up), and the arithmetic of a bucket.
const (
	before     = 35
	arithmetic = 8
)

// Program is a way to keep one bucket.
type Program struct {
	Name string
	New  func(cores int) func(*Core)
}

// Programs returns what is compared.
func Programs() []Program {
	return []Program{
		{"CAS, granted", granted},
		{"CAS with pauses, granted", patient},
		{"CAS, refused", refused},
		{"spin lock", spinLock},
		{"MCS lock", queueLock},
	}
}

// granted is the loop of tb/cas: it reads the word, and swaps it if it has not changed.
func granted(int) func(*Core) { return swapLoop(0, 0) }

// patient is the same, with a pause of 50 ns before the second attempt, and twice as long a pause
// before each further one, up to a microsecond.
func patient(int) func(*Core) { return swapLoop(50, 1000) }

func swapLoop(pause, longest float64) func(*Core) {
	word := NewLine(0)
	return func(c *Core) {
		for ; ; c.Done() {
			c.Work(before)
			for wait := pause; ; wait = min(2*wait, longest) {
				old := c.Read(word)
				c.Work(arithmetic)
				if c.CompareAndSwap(word, old, old+1) {
					break
				}
				c.Work(wait)
			}
		}
	}
}

// refused is the same with an empty bucket: it only reads the word.
func refused(int) func(*Core) {
	word := NewLine(0)
	return func(c *Core) {
		for ; ; c.Done() {
			c.Work(before)
			c.Read(word)
			c.Work(arithmetic)
		}
	}
}

// exclusive is a critical section. It panics if two cores are in it.
type exclusive int

// Work is the arithmetic of a bucket that a lock protects.
func (e *exclusive) Work(c *Core) {
	if *e++; *e > 1 {
		panic("coherence: two cores have the lock")
	}
	c.Work(arithmetic)
	*e--
}

// spinLock is a lock that callers test before they try to take it. The bucket is in its line.
func spinLock(int) func(*Core) {
	lock, one := NewLine(0), new(exclusive)
	return func(c *Core) {
		for ; ; c.Done() {
			c.Work(before)
			for c.Read(lock) != 0 || !c.CompareAndSwap(lock, 0, 1) {
				c.Await(lock, 1)
			}
			one.Work(c)
			c.Exchange(lock, 0)
		}
	}
}

// queueLock is the lock of Mellor-Crummey and Scott (1991): each caller waits for a line of its
// own.
func queueLock(cores int) func(*Core) {
	tail, bucket, one := NewLine(0), NewLine(0), new(exclusive)
	granted, next := make([]*Line, cores+1), make([]*Line, cores+1) // 0 is no core
	for i := range granted {
		granted[i], next[i] = NewLine(0), NewLine(0)
	}
	return func(c *Core) {
		me := uint64(c.Index + 1)
		for ; ; c.Done() {
			c.Work(before)
			c.Exchange(next[me], 0)
			c.Exchange(granted[me], 0)
			if predecessor := c.Exchange(tail, me); predecessor != 0 {
				c.Exchange(next[predecessor], me)
				c.Await(granted[me], 0)
			}
			one.Work(c)
			c.Exchange(bucket, c.Read(bucket)+1)
			successor := c.Read(next[me])
			if successor == 0 {
				if c.CompareAndSwap(tail, me, 0) {
					continue
				}
				successor = c.Await(next[me], 0)
			}
			c.Exchange(granted[successor], 1)
		}
	}
}
