package replay

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// TextMapper sets the flags of type "text": it has them parse what follows them, even if
// that begins with a hyphen. Otherwise kong takes -1 for a flag and does not say what was
// expected.
var TextMapper = kong.NamedMapper("text", kong.MapperFunc(
	func(ctx *kong.DecodeContext, target reflect.Value) error {
		text, _ := ctx.Scan.Pop().Value.(string) // nothing at the end of the line
		return target.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}))

// prefix is the length of an IPv6 prefix, in bits.
type prefix int

// UnmarshalText parses a prefix.
func (p *prefix) UnmarshalText(text []byte) (err error) {
	*p, err = whole[prefix](text, 1, 128)
	return err
}

// sampleLines is the length of a generated log.
type sampleLines int

// UnmarshalText parses a number of lines.
func (n *sampleLines) UnmarshalText(text []byte) (err error) {
	*n, err = whole[sampleLines](text, samplelog.MinLines, samplelog.MaxLines)
	return err
}

// whole parses a whole number from low to high.
func whole[N ~int](text []byte, low, high int) (N, error) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q: want a whole number, %d to %d", text, low, high)
	}
	return N(n), nil
}

// maxKeys is the bound of a limiter's table, which knows what it can be.
type maxKeys int

// UnmarshalText parses a bound. What is no number is as wrong as 0.
func (n *maxKeys) UnmarshalText(text []byte) error {
	number, err := strconv.Atoi(string(text))
	if err != nil {
		number = 0
	}
	*n = maxKeys(number)
	_, err = tb.Apply(tb.WithMaxKeys(number))
	var bad *tb.ConfigError
	if errors.As(err, &bad) {
		return fmt.Errorf("%q: want a whole number, %s", text, bad.Range)
	}
	return err
}
