package beforerules

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A % that begins no escape is escaped.
func TestStrayPercents(t *testing.T) {
	for query, want := range map[string]string{
		"a=5%": "a=5%25", "%": "%25", "%4": "%254", "%%41": "%25%41", "a=%41;b+%3b": "a=%41;b+%3b",
		"%zz%4g%G4&b=%aF": "%25zz%254g%25G4&b=%aF",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.RawQuery = query
		if status, _ := Status(r); status != 0 || r.URL.RawQuery != want {
			t.Errorf("%s: %d, %s, want %s", query, status, r.URL.RawQuery, want)
		}
	}
}

func TestDroppedFields(t *testing.T) {
	for name, want := range map[string][2]bool{ // of a trusted proxy and of others
		"X-Api-Key": {false, false}, "X-Real-Ip": {false, true}, "X_api_key": {true, true},
		"Forwarded": {true, true}, "Proxy-Authorization": {true, true},
	} {
		if got := [2]bool{Drops(name, true), Drops(name, false)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
