package mutex

import (
	"reflect"
	"strings"
)

// copyStrings replaces the strings in a key, also in fields and elements, by copies. The caller
// may reuse the memory of its strings.
func copyStrings[K comparable](key *K) { copyStringsIn(reflect.ValueOf(key).Elem()) }

func copyStringsIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // v may be unexported
		s.SetString(strings.Clone(s.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			copyStringsIn(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			copyStringsIn(v.Index(i))
		}
	}
}
