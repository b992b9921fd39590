package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// object is a JSON object whose fields are taken one after the other. A method for a kind of fields
// reads the field into a variable, or writes the field of a document that is made, unless the
// variable is zero.
type object struct {
	*reader
	path   Path
	names  []string // in the order of the document
	values map[string]any
	isSet  bool // a field has been written that is not zero
}

func newObject(r *reader, path Path) *object {
	return &object{reader: r, path: path, values: map[string]any{}}
}

func (o *object) has(name string) bool {
	_, there := o.values[name]
	return there
}

func (o *object) add(name, format string, args ...any) {
	o.errs.Add(o.path.Field(name), format, args...)
}

// take removes a field and returns its value, and whether it was there and is a T.
func take[T any](o *object, name, want string) (v T, ok bool) {
	raw, there := o.values[name]
	if !there {
		return v, false
	}
	delete(o.values, name)
	return as[T](o, o.path.Field(name), raw, want)
}

// as returns a value as a T, and whether it is one. A value of another type is an error: want says
// what it must be.
func as[T any](o *object, path Path, raw any, want string) (v T, ok bool) {
	if v, ok = raw.(T); !ok {
		o.errs.Add(path, "must be %s (got %s)", want, kindOf(raw))
	}
	return v, ok
}

func (o *object) put(name string, value any, isSet bool) {
	if isSet {
		o.isSet = true
		o.require(name)
	}
	if o.has(name) {
		o.values[name] = value
	}
}

// require is for fields that must be there, also if they are zero. It comes before the fields.
func (o *object) require(names ...string) {
	for _, name := range names {
		o.requireOr(name, "is missing")
	}
}

func (o *object) requireOr(name, problem string) {
	switch {
	case o.has(name):
	case o.writes:
		o.names, o.values[name] = append(o.names, name), nil
	default:
		o.add(name, "%s", problem)
	}
}

func (o *object) checkUnknown() {
	for _, name := range o.names {
		if o.has(name) {
			o.add(name, "is an unknown field")
		}
	}
}

func (o *object) object(name string, f func(*object)) {
	if o.writes {
		v := newObject(o.reader, "")
		f(v)
		o.put(name, v, v.isSet)
	} else if v, ok := take[*object](o, name, "an object"); ok {
		f(v)
		v.checkUnknown()
	}
}

// entries are all fields of an object, by name. f takes each of them. One that f cannot read stays
// unread, which is a value without a second error.
func entries[T any](o *object, m *map[string]T, unread T, f func(name string, v *T)) {
	if o.writes {
		for _, name := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[name]
			o.isSet = true
			o.require(name)
			f(name, &v)
		}
		return
	}
	*m = map[string]T{}
	for _, name := range o.names {
		v := unread
		f(name, &v)
		(*m)[name] = v
	}
}

// list is an array of objects. f takes the fields of each, which is unread before: see entries. An
// array without elements is an error, unless empty is "".
func list[T any](o *object, name, empty string, all *[]T, unread T, f func(*object, *T)) {
	if o.writes {
		objects := []*object{}
		for i := range *all {
			objects = append(objects, newObject(o.reader, ""))
			f(objects[i], &(*all)[i])
		}
		o.put(name, objects, len(objects) > 0)
		return
	}
	elements, ok := take[[]any](o, name, "an array")
	if ok && len(elements) == 0 && empty != "" {
		o.add(name, "%s", empty)
	}
	for i, raw := range elements {
		if e, ok := as[*object](o, o.path.Field(name).Index(i), raw, "an object"); ok {
			v := unread
			f(e, &v)
			e.checkUnknown()
			*all = append(*all, v)
		}
	}
}

// texts is an array of strings. An element with an error is replaced by a valid text, which begins
// with valid, so that it has no second error.
func (o *object) texts(name string, all *[]string, valid string) {
	if o.writes {
		o.put(name, append([]string{}, *all...), len(*all) > 0)
		return
	}
	elements, _ := take[[]any](o, name, "an array")
	for i, raw := range elements {
		s, ok := as[string](o, o.path.Field(name).Index(i), raw, "a string")
		if !ok {
			s = valid + strconv.Itoa(i)
		}
		*all = append(*all, s)
	}
}

// text is a string. It is "" if it has an error.
func (o *object) text(name string, s *string) {
	if o.writes {
		o.put(name, *s, *s != "")
	} else {
		*s, _ = take[string](o, name, "a string")
	}
}

// scalar is a value that is compared as text: a string, number or boolean.
func (o *object) scalar(name string, s *string) {
	if o.writes {
		o.text(name, s)
		return
	}
	switch v := o.values[name].(type) {
	case string, json.Number, bool:
		*s = fmt.Sprint(v)
	default:
		o.add(name, "must be a string, number or boolean (got %s)", kindOf(v))
	}
	delete(o.values, name)
}

// choice is a text that stands for an index of names, of which 0 is the default. A value without a
// name is not valid, and is written as a number.
func choice[T ~int](o *object, name string, v *T, names []string) {
	if o.writes {
		var text any = *v
		if *v >= 0 && int(*v) < len(names) {
			text = names[*v]
		}
		o.put(name, text, *v != 0)
		return
	}
	s, ok := take[string](o, name, "a string")
	i := slices.Index(names, s)
	if ok && i < 0 {
		o.add(name, "must be %s (got %q)", strings.Join(names, " or "), s)
	}
	*v = T(max(i, 0))
}

func (o *object) either(name string, isSecond *bool, names []string) {
	i := 0
	if *isSecond {
		i = 1
	}
	choice(o, name, &i, names)
	*isSecond = i == 1
}

// duration is a duration above 0. It is unreadDelay if it has an error.
func (o *object) duration(name string, d *time.Duration) {
	if o.writes {
		o.put(name, d.String(), *d != 0)
	}
	if o.writes || !o.has(name) {
		return
	}
	const want = `a duration such as "500ms"`
	*d = unreadDelay
	text, ok := take[string](o, name, want)
	got, err := time.ParseDuration(text)
	switch {
	case !ok:
	case err != nil:
		o.add(name, "must be %s (got %q)", want, text)
	case got <= 0:
		o.add(name, "must be > 0 (got %s)", text)
	default:
		*d = got
	}
}

// The ranges of numbers.
const (
	anyNumber = ""
	above0    = "> 0"
	atLeast0  = ">= 0"
)

// number returns the exact value of a number in a range, or nil if it is missing or has an error.
func (o *object) number(name, want string) *big.Rat {
	n, ok := take[json.Number](o, name, "a number")
	if !ok {
		return nil
	}
	x, ok := decimal(string(n))
	switch {
	case !ok:
		o.add(name, "has too many digits (got %s)", n)
	case want != anyNumber && x.Sign() < 0 || want == above0 && x.Sign() == 0:
		o.add(name, "must be %s (got %s)", want, short(x))
	default:
		return x
	}
	return nil
}

func (o *object) float(name string, v *float64, want string) {
	if o.writes {
		o.put(name, *v, *v != 0)
	} else if x := o.number(name, want); x != nil {
		*v, _ = x.Float64()
	}
}

func (o *object) float0(name string, v *float64) { o.float(name, v, atLeast0) }

func (o *object) whole(name string, n *int, most int64) {
	if o.writes {
		o.put(name, *n, *n != 0)
	} else if x := o.number(name, above0); x != nil && (!x.IsInt() || x.Cmp(big.NewRat(most, 1)) > 0) {
		o.add(name, "must be a whole number, 1 to %d (got %s)", most, short(x))
	} else if x != nil {
		*n = int(x.Num().Int64())
	}
}

func (o *object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, name := range o.names {
		quoted, _ := json.Marshal(name) // never fails
		value, err := json.Marshal(o.values[name])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, quoted...), ':'), value...)
	}
	return append(text, '}'), nil
}

// reader reads a JSON document field by field. Unlike encoding/json into structs, it reports
// every error with its path, and accepts neither unknown nor repeated fields.
type reader struct {
	dec    *json.Decoder
	errs   Problems
	writes bool // a document is made, and none is read
}

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

// readValue reads the next value: an *object, a []any or what json.Decoder.Token returns. The
// document is valid, so there is no error.
func (r *reader) readValue(path Path) any {
	switch t, _ := r.dec.Token(); t {
	case json.Delim('{'):
		return r.readObject(path)
	case json.Delim('['):
		list := []any{}
		for r.dec.More() {
			list = append(list, r.readValue(path.Index(len(list))))
		}
		_, _ = r.dec.Token()
		return list
	default:
		return t
	}
}

func (r *reader) readObject(path Path) *object {
	o := newObject(r, path)
	for r.dec.More() {
		t, _ := r.dec.Token()
		name, _ := t.(string)
		v := r.readValue(path.Field(name))
		if o.has(name) {
			r.errs.Add(path.Field(name), "is there more than once")
			continue
		}
		o.names, o.values[name] = append(o.names, name), v
	}
	_, _ = r.dec.Token()
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
