package tb

import "reflect"

// CheckKeyType returns a *ConfigError if K is an interface type or contains one, in a field of a
// struct or an element of an array. Implementations of a limiter call it. A table copies its
// keys, and cannot copy the value in an interface. A call would panic if that value could not be
// compared.
//
// Pointers and channels are accepted: the table compares them, and does not follow them. An array
// of no elements contains nothing.
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
