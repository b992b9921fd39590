package replay

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

// maxSweep is the most limits that one pass compares: each has its bit in the word in
// which a client's refusals are noted.
const maxSweep = 64

// Sweep lists the rates and the bursts of which every pair is tried. Either list may be
// empty: then the other flags say which one is meant.
type Sweep struct {
	Rates  []Rate
	Bursts []Burst
}

// Burst is a capacity in tokens, 1 to tb.MaxCapacity. 0 is none given.
type Burst int

const wantSweep = `want "rate=1,2,5 burst=10,20", rates as in --rate, bursts as in --burst,` +
	" either one optional"

// UnmarshalText parses lists such as "rate=1,300/m burst=10,20".
func (s *Sweep) UnmarshalText(text []byte) error {
	fields := strings.Fields(string(text))
	for _, field := range fields {
		if err := s.add(field); err != nil {
			return fmt.Errorf("sweep %q: %w", text, err)
		}
	}
	if len(fields) == 0 {
		return fmt.Errorf("sweep %q: %s", text, wantSweep)
	}
	return nil
}

// add parses one list, and adds its values to those that are there.
func (s *Sweep) add(field string) error {
	name, list, _ := strings.Cut(field, "=")
	for value := range strings.SplitSeq(list, ",") {
		var rate Rate
		var burst Burst
		var err error
		switch name {
		case "rate":
			err = rate.UnmarshalText([]byte(value))
			s.Rates = append(s.Rates, rate)
		case "burst":
			err = burst.UnmarshalText([]byte(value))
			s.Bursts = append(s.Bursts, burst)
		default:
			return fmt.Errorf("%q: %s", field, wantSweep)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// UnmarshalText parses a whole number of tokens.
func (b *Burst) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > tb.MaxCapacity {
		return fmt.Errorf("burst %q: want a whole number, 1 to %d", text, tb.MaxCapacity)
	}
	*b = Burst(n)
	return nil
}
