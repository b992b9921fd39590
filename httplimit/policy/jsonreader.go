package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reader reads a JSON document field by field. Unlike encoding/json into structs, it reports
// every error with its path, and accepts neither unknown nor repeated fields.
type reader struct {
	dec    *json.Decoder
	errs   Problems
	writes bool // a document is made, and none is read
}

// document returns the one object in data.
func (r *reader) document(data []byte) (*object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the byte order mark of some editors
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line := 1 + bytes.Count(data[:syntax.Offset], []byte("\n"))
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	r.dec = json.NewDecoder(bytes.NewReader(data))
	r.dec.UseNumber()
	v := r.readValue("")
	o, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("must be an object (got %s)", kindOf(v))
	}
	return o, nil
}

// token returns the next token of a document that is valid, so there is no error.
func (r *reader) token() json.Token {
	t, _ := r.dec.Token()
	return t
}

// readValue reads the next value: an *object, a []any or what json.Decoder.Token returns.
func (r *reader) readValue(path Path) any {
	switch t := r.token(); t {
	case json.Delim('{'):
		return r.readObject(path)
	case json.Delim('['):
		list := []any{}
		for r.dec.More() {
			list = append(list, r.readValue(path.Index(len(list))))
		}
		r.token()
		return list
	default:
		return t
	}
}

func (r *reader) readObject(path Path) *object {
	o := newObject(r, path)
	for r.dec.More() {
		name, _ := r.token().(string)
		v := r.readValue(path.Field(name))
		if o.has(name) {
			r.errs.Add(path.Field(name), "is there more than once")
			continue
		}
		o.names, o.values[name] = append(o.names, name), v
	}
	r.token()
	return o
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

const leastNumber = 1e-40

// decimal returns the value of a JSON number. It refuses numbers with more than 40 digits or with
// an exponent beyond 40, because 1e999999999 would take a gigabyte, and numbers below leastNumber,
// because MarshalJSON would write them with such an exponent.
func decimal(s string) (*big.Rat, bool) {
	const digits = 40
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(mantissa) > digits {
		return nil, false
	}
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || e < -digits || e > digits) {
		return nil, false
	}
	x, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, false
	}
	f, _ := x.Float64()
	return x, f == 0 || math.Abs(f) >= leastNumber
}

// short writes x with as few digits as identify it.
func short(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	f, _ := x.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
