package mutex

import (
	"reflect"
	"strings"
)

// own replaces the strings in a key, those in fields and elements included, by copies: the
// caller's may be parts of a buffer that is used again.
func own[K comparable](key *K) { ownStrings(reflect.ValueOf(key).Elem()) }

func ownStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // v may be unexported
		s.SetString(strings.Clone(s.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			ownStrings(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			ownStrings(v.Index(i))
		}
	}
}
