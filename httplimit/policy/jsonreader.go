package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reader reads a JSON document field by field. Unlike encoding/json into structs, it reports
// every error with its path, and accepts neither unknown nor repeated fields.
type reader struct {
	dec  *json.Decoder
	errs Problems
}

// object is a JSON object whose fields are taken one after the other.
type object struct {
	*reader
	path   Path
	names  []string // in the order of the file
	values map[string]any
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
	o := &object{reader: r, path: path, values: map[string]any{}}
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

// take removes a field and returns its value, and whether it was there and is a T. A value of
// another type is an error: want says what it must be.
func take[T any](o *object, name, want string) (v T, ok bool) {
	raw, there := o.values[name]
	if !there {
		return v, false
	}
	delete(o.values, name)
	if v, ok = raw.(T); !ok {
		o.add(name, "must be %s (got %s)", want, kindOf(raw))
	}
	return v, ok
}

func (o *object) add(name, format string, args ...any) {
	o.errs.Add(o.path.Field(name), format, args...)
}

func (o *object) require(name string) {
	if !o.has(name) {
		o.add(name, "is missing")
	}
}

func (o *object) has(name string) bool {
	_, there := o.values[name]
	return there
}

// isEmptyArray reports whether a field that has not been taken is an array without elements.
func (o *object) isEmptyArray(name string) bool {
	list, ok := o.values[name].([]any)
	return ok && len(list) == 0
}

func (o *object) text(name string) string {
	s, _ := take[string](o, name, "a string")
	return s
}

// choice returns the index of the field's text in names, and 0 if the field is not there.
func (o *object) choice(name string, names ...string) int {
	s, ok := take[string](o, name, "a string")
	if !ok {
		return 0
	}
	i := slices.Index(names, s)
	if i < 0 {
		o.add(name, "must be %s (got %q)", strings.Join(names, " or "), s)
	}
	return max(i, 0)
}

// object calls f with the object that a field is.
func (o *object) object(name string, f func(*object)) {
	if v, ok := take[*object](o, name, "an object"); ok {
		f(v)
		v.checkUnknown()
	}
}

// elements calls f for each element of an array. An element that is not a T is an error: want
// says what it must be. f gets the zero T in its place.
func elements[T any](o *object, name, want string, f func(i int, v T, ok bool)) {
	list, _ := take[[]any](o, name, "an array")
	for i, raw := range list {
		v, ok := raw.(T)
		if !ok {
			o.errs.Add(o.path.Field(name).Index(i), "must be %s (got %s)", want, kindOf(raw))
		}
		f(i, v, ok)
	}
}

// texts returns the elements of an array of strings. An element with an error is replaced by a
// valid text, which begins with valid, so that it has no second error.
func (o *object) texts(name, valid string) (texts []string) {
	elements(o, name, "a string", func(i int, s string, ok bool) {
		if !ok {
			s = valid + strconv.Itoa(i)
		}
		texts = append(texts, s)
	})
	return texts
}

// objects calls f for each element of an array of objects.
func (o *object) objects(name string, f func(e *object)) {
	elements(o, name, "an object", func(_ int, e *object, ok bool) {
		if ok {
			f(e)
			e.checkUnknown()
		}
	})
}

// number returns the exact value of a number, or nil if it is missing or has an error.
func (o *object) number(name string) *big.Rat {
	n, ok := take[json.Number](o, name, "a number")
	if !ok {
		return nil
	}
	x, ok := decimal(string(n))
	if !ok {
		o.add(name, "has too many digits (got %s)", n)
		return nil
	}
	return x
}

// positive is number for a field that must be above 0.
func (o *object) positive(name string) *big.Rat {
	x := o.number(name)
	if x != nil && x.Sign() <= 0 {
		o.add(name, "must be > 0 (got %s)", short(x))
		return nil
	}
	return x
}

// leastNumber is the least number above 0 in a policy.
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

// checkUnknown adds an error for each field that was not taken.
func (o *object) checkUnknown() {
	for _, name := range o.names {
		if o.has(name) {
			o.add(name, "is an unknown field")
		}
	}
}
