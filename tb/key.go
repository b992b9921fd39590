package tb

import "reflect"

// CheckKeyType returns a *ConfigError if K is an interface type or holds one, in fields
// of structs or elements of arrays. It is for those who implement a limiter. A table
// copies its keys, and cannot copy what is behind an interface; and a call with a value
// there that cannot be compared would panic.
//
// Pointers and channels are accepted: they are compared as such, and nothing follows them.
// So is an array of no elements, which holds nothing.
func CheckKeyType[K comparable]() error {
	if t := reflect.TypeFor[K](); holdsInterface(t) {
		return &ConfigError{"K", t.String(), "a type that holds no interface"}
	}
	return nil
}

func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return t.Len() > 0 && holdsInterface(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
