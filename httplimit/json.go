package httplimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a policy file may be nested. The deepest that means anything is
// 7: policies, spec, rules, algorithm_config and what is between them.
const maxDepth = 16

// reader reads a JSON document field by field. Unlike encoding/json into structs, it
// reports every error, each with its path, and takes neither unknown nor repeated fields.
type reader struct {
	dec      *json.Decoder
	errs     problems
	warnings []string
}

// object is a JSON object of which the fields are taken one after the other.
type object struct {
	*reader
	path   string
	names  []string // in the order of the file
	values map[string]any
}

func (r *reader) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, join(path, fmt.Sprintf(format, args...)))
}

// document returns the object that data consists of.
func (r *reader) document(data []byte) (*object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the byte order mark of some editors
	r.dec = json.NewDecoder(bytes.NewReader(data))
	r.dec.UseNumber()
	v, err := r.value("", 0)
	if err == nil {
		if _, err = r.dec.Token(); err == nil {
			err = errors.New("more than one JSON value")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	} else if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		line := 1 + bytes.Count(data[:r.dec.InputOffset()], []byte("\n"))
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	o, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("must be an object (got %s)", kindOf(v))
	}
	return o, nil
}

// value reads the next value: an *object, a []any or what json.Decoder.Token returns.
func (r *reader) value(path string, depth int) (any, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	switch t {
	case json.Delim('{'):
		return r.object(path, depth)
	case json.Delim('['):
		list := []any{}
		for r.dec.More() {
			v, err := r.value(index(path, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := r.dec.Token()
		return list, err
	}
	return t, nil
}

func (r *reader) object(path string, depth int) (any, error) {
	o := &object{reader: r, path: path, values: map[string]any{}}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		v, err := r.value(field(path, name), depth+1)
		if err != nil {
			return nil, err
		}
		if _, again := o.values[name]; again {
			r.errs.add(field(path, name), "is there more than once")
			continue
		}
		o.names, o.values[name] = append(o.names, name), v
	}
	_, err := r.dec.Token()
	return o, err
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

// take returns the field, which is not asked for again, and whether it is there and a T.
// That it is something else is an error.
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
	o.errs.add(field(o.path, name), format, args...)
}

func (o *object) has(name string) bool {
	_, there := o.values[name]
	return there
}

func (o *object) text(name string) string {
	s, _ := take[string](o, name, "a string")
	return s
}

// choice returns which of the names the field is, and 0 if it is not there.
func (o *object) choice(name string, names ...string) int {
	s, ok := take[string](o, name, "a string")
	if !ok {
		return 0
	}
	for i, n := range names {
		if s == n {
			return i
		}
	}
	o.add(name, "must be %s (got %q)", strings.Join(names, " or "), s)
	return 0
}

func (o *object) object(name string) *object {
	v, _ := take[*object](o, name, "an object")
	return v
}

// each calls f for each element of the array that the field is.
func (o *object) each(name string, f func(i int, v any)) {
	list, _ := take[[]any](o, name, "an array")
	for i, v := range list {
		f(i, v)
	}
}

// texts returns the elements of the array that the field is. One that is no string is an
// error, and something in its place that is none: the others are still to be checked.
func (o *object) texts(name string) (texts []string) {
	o.each(name, func(i int, v any) {
		s, ok := v.(string)
		if !ok {
			o.errs.add(index(field(o.path, name), i), "must be a string (got %s)", kindOf(v))
			s = "query:" + strconv.Itoa(i) // a key, a host with a port, a method
		}
		texts = append(texts, s)
	})
	return texts
}

// objects calls f for each element of the array that the field is.
func (o *object) objects(name string, f func(i int, e *object)) {
	o.each(name, func(i int, v any) {
		if e, ok := v.(*object); ok {
			f(i, e)
			return
		}
		o.errs.add(index(field(o.path, name), i), "must be an object (got %s)", kindOf(v))
	})
}

// number returns the exact number that the field is, or nil.
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

// positive is number for fields that must be above 0.
func (o *object) positive(name string) *big.Rat {
	x := o.number(name)
	if x != nil && x.Sign() <= 0 {
		o.add(name, "must be > 0 (got %s)", short(x))
		return nil
	}
	return x
}

// decimal returns the number that a JSON number stands for. 1e999999999 would take a
// gigabyte: what has more than 40 digits, before or after the point, is refused.
func decimal(s string) (*big.Rat, bool) {
	const digits = 40
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(mantissa) > digits {
		return nil, false
	}
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || e < -digits || e > digits) {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// short writes x as short as it can be read.
func short(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	f, _ := x.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// done reports the fields that nobody has asked for.
func (o *object) done() {
	for _, name := range o.names {
		if o.has(name) {
			o.add(name, "is an unknown field")
		}
	}
}
