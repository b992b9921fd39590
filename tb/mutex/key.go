package mutex

import (
	"reflect"
	"strings"
)

// copyStrings replaces the strings in a key, also in fields and elements, by copies. The caller
// may reuse the memory of its strings.
func copyStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // v may be unexported
		s.SetString(strings.Clone(s.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			copyStrings(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			copyStrings(v.Index(i))
		}
	}
}
