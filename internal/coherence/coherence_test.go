package coherence

import (
	"fmt"
	"testing"
)

func sum(calls []int) (total int) {
	for _, n := range calls {
		total += n
	}
	return total
}

var typical = Costs{Transfer: 60, Hit: 1, Atomic: 6}

// Alone, a core pays for its work and never for a transfer but the first.
func TestOneCore(t *testing.T) {
	const calls = 1000
	for name, want := range map[string]float64{
		"CAS, granted": before + 1 + arithmetic + 1 + 6,
		"CAS, refused": before + 1 + arithmetic,
		"spin lock":    before + 1 + 1 + 6 + arithmetic + 1 + 6,
		"MCS lock":     before + 3*(1+6) + arithmetic + 1 + 1 + 6 + 1 + 1 + 6,
	} {
		for _, p := range Programs() {
			if p.Name != name {
				continue
			}
			n := sum(Run(typical, 1, calls*want, p.New(1)))
			if n < calls-10 || n > calls+10 {
				t.Errorf("%s: %d calls in the time of %d", name, n, calls)
			}
		}
	}
}

// Cores that only read scale without limit, and cores that write one line share its transfers.
func TestScaling(t *testing.T) {
	const time = 1e5
	one := sum(Run(typical, 1, time, refused(1)))
	if n := sum(Run(typical, 64, time, refused(64))); n < 63*one {
		t.Errorf("64 readers make %d calls, and one %d", n, one)
	}
	most := int(time/(typical.Transfer+typical.Atomic)) + 64
	for _, cores := range []int{2, 8, 64} {
		if n := sum(Run(typical, cores, time, granted(cores))); n > most {
			t.Errorf("%d writers make %d calls, and the line has time for %d transfers", cores, n, most)
		}
	}
	if n := sum(Run(typical, 64, time, spinLock(64))); n < 8*sum(Run(typical, 64, time, granted(64))) {
		t.Errorf("64 cores make %d calls with a lock, and not much fewer without", n)
	}
}

// No update is lost, and no two cores have a lock, which would panic.
func TestLocksExclude(t *testing.T) {
	for _, p := range Programs() {
		for _, cores := range []int{2, 3, 16} {
			t.Run(fmt.Sprint(p.Name, cores), func(t *testing.T) {
				calls := Run(typical, cores, 1e5, p.New(cores))
				for i, n := range calls {
					if n == 0 && p.Name == "MCS lock" {
						t.Errorf("core %d has made no call: the lock is not fair", i)
					}
				}
			})
		}
	}
	word, counted := NewLine(0), 0
	Run(typical, 16, 1e5, func(c *Core) {
		for {
			old := c.Read(word)
			c.Work(3)
			if c.CompareAndSwap(word, old, old+1) {
				counted++
			}
		}
	})
	if word.value != uint64(counted) || counted < 100 {
		t.Errorf("%d swaps have succeeded, and the word is %d", counted, word.value)
	}
}
