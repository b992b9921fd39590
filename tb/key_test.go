package tb

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"unique"
)

type name string

type route struct {
	Tenant, Path string
	Port         int
}

type failure struct {
	Code int
	Last struct {
		when int64
		err  error
	}
}

func TestKeyTypesThatHoldAnInterfaceAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		ok   bool
	}{
		{"string", CheckKeyType[string](), true},
		{"float64", CheckKeyType[float64](), true},
		{"named string", CheckKeyType[name](), true},
		{"address", CheckKeyType[netip.Addr](), true},
		{"handle", CheckKeyType[unique.Handle[any]](), true},
		{"array of strings", CheckKeyType[[2]string](), true},
		{"struct with strings", CheckKeyType[route](), true},
		{"empty struct", CheckKeyType[struct{}](), true},
		{"pointer", CheckKeyType[*int](), true},
		{"pointer to an interface", CheckKeyType[*any](), true},
		{"pointer to a struct with an interface", CheckKeyType[*failure](), true},
		{"channel", CheckKeyType[chan any](), true},
		{"empty array of interfaces", CheckKeyType[[0]any](), true},
		{"any", CheckKeyType[any](), false},
		{"interface with a method", CheckKeyType[fmt.Stringer](), false},
		{"struct with an interface", CheckKeyType[struct{ any }](), false},
		{"array of interfaces", CheckKeyType[[1]any](), false},
		{"interface after other fields", CheckKeyType[struct {
			a, b string
			_    error
		}](), false},
		{"struct in a struct", CheckKeyType[failure](), false},
		{"structs in an array", CheckKeyType[[3]failure](), false},
		{"array in a struct", CheckKeyType[struct{ list [2][1]error }](), false},
	} {
		var cfg *ConfigError
		switch {
		case tt.ok && tt.err != nil:
			t.Errorf("%s: unexpected error: %v", tt.name, tt.err)
		case !tt.ok && !errors.As(tt.err, &cfg):
			t.Errorf("%s: error %v is not a *ConfigError", tt.name, tt.err)
		case !tt.ok && (cfg.Field != "K" || cfg.Value == "" || cfg.Range == ""):
			t.Errorf("%s: got %+v, want field K with value and range", tt.name, cfg)
		}
	}
	err := CheckKeyType[fmt.Stringer]()
	const want = "ratelimit: K is fmt.Stringer, want a type that holds no interface"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
