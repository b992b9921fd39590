package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Share is a share of the clients or requests as a user writes it: 0.1%.
type Share struct {
	fraction float64
	text     string
}

// isSet reports whether a share was given.
func (s Share) isSet() bool { return s.text != "" }

// String returns the share as a percentage.
func (s Share) String() string { return s.text }

// UnmarshalText parses a percentage.
func (s *Share) UnmarshalText(text []byte) error {
	number, isPercent := strings.CutSuffix(string(text), "%")
	value, ok := parseDecimal(number)
	if ok && isPercent {
		if p, _ := value.Float64(); p <= 50 {
			*s = newShare(p)
			return nil
		}
	}
	return fmt.Errorf("%q: want a percentage, 0%% to 50%%, such as 0.1%%", text)
}

func newShare(percentage float64) Share {
	return Share{percentage / 100, strconv.FormatFloat(percentage, 'f', -1, 64) + " %"}
}

// columns returns the shares that a suggestion compares, s among them.
func (s Share) columns() []Share {
	all := []Share{newShare(0), newShare(0.01), newShare(0.1), newShare(1), newShare(5)}
	i, found := slices.BinarySearchFunc(all, s, func(a, b Share) int {
		return cmp.Compare(a.fraction, b.fraction)
	})
	if !found {
		all = slices.Insert(all, i, s)
	}
	return all
}

func fractions(shares []Share) (all []float64) {
	for _, s := range shares {
		all = append(all, s.fraction)
	}
	return all
}

// defaultRates are the rates that a suggestion tries, six in each power of ten. None is more than
// 1.7 times the one before.
const defaultRates = "rate=0.01,0.015,0.02,0.03,0.05,0.07,0.1,0.15,0.2,0.3,0.5,0.7," +
	"1,1.5,2,3,5,7,10,15,20,30,50,70"

// setSuggestion sets the rates that a suggestion tries.
func (c *Command) setSuggestion(o *Options) error {
	rate := c.Rate != Rate{}
	switch {
	case c.Burst != 0 || len(o.Bursts) > 0:
		return errors.New("want either --suggest, or --burst or bursts in --sweep, and not both")
	case c.Overflow != "forgive" || len(c.Algorithm) > 0:
		return errors.New("want either --suggest, or --overflow or --algorithm, and not both")
	case rate && len(o.Rates) > 0:
		return errors.New("want either --rate, or rates in --sweep, and not both")
	case rate:
		o.Rates = []Rate{c.Rate}
	case len(o.Rates) == 0:
		var sweep Sweep
		if err := sweep.UnmarshalText([]byte(defaultRates)); err != nil {
			return err
		}
		o.Rates = sweep.Rates
	case len(o.Rates) > maxSweep:
		return fmt.Errorf("sweep: %d rates, want at most %d", len(o.Rates), maxSweep)
	}
	return nil
}
