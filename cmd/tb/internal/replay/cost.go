package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// Cost is the number of tokens that a request takes: a constant, the size of the response
// in some unit, or the value of a JSON field.
//
// No request is free. A response that is empty, or whose size was not logged, costs as much
// as one byte. A request whose field is missing or not a positive number costs one token,
// and the report counts such requests.
type Cost struct {
	text     string
	constant float64 // in tokens; 0 if the cost varies
	unit     float64 // bytes a token; 0 if the cost does not depend on the size
	field    string  // the JSON field, if both are 0
}

const wantCost = "want a positive number of tokens, bytes, bytes/KiB (kB, KiB, MB, MiB," +
	" GB or GiB), or the name of a JSON field"

// byteUnits are the units of a cost in bytes: the decimal ones, and the binary ones with an
// i.
var byteUnits = map[string]float64{
	"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// String returns the cost as it was written.
func (c Cost) String() string { return c.text }

// UnmarshalText parses a cost.
func (c *Cost) UnmarshalText(text []byte) error {
	*c = Cost{text: string(text)}
	size, unit, divided := strings.Cut(c.text, "/")
	number, err := strconv.ParseFloat(c.text, 64)
	ok := true
	switch {
	case err == nil:
		c.constant = number
		ok = number > 0 && !math.IsInf(number, 1)
	case size == "bytes" && divided:
		c.unit, ok = byteUnits[unit]
	case size == "bytes":
		c.unit = 1
	default:
		c.field = c.text
		_, isUnit := byteUnits[c.field]
		ok = isFieldName(c.field) && !isUnit && !isMisspelt(c.field, "bytes")
	}
	if !ok {
		return fmt.Errorf("cost %q: %s", text, wantCost)
	}
	return nil
}

// isFieldName reports whether s can name a field. Otherwise it is a misspelt number or unit.
func isFieldName(s string) bool {
	return s != "" && !strings.ContainsAny(s, "/ ") && !strings.ContainsAny(s[:1], "+-.0123456789")
}

// tokens returns the cost of a request. If the cost stands in for a field without a usable
// value, standIn is true. The field is the last one of rec.Fields.
func (c *Cost) tokens(rec *accesslog.Record) (cost float64, standIn bool) {
	switch {
	case c.constant > 0:
		return c.constant, false
	case c.unit > 0:
		return float64(max(rec.Size, 1)) / c.unit, false
	}
	text := rec.Fields[len(rec.Fields)-1]
	cost, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(cost > 0) || math.IsInf(cost, 1) {
		return 1, true
	}
	return cost, false
}
