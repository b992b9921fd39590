package httplimit

import (
	"net/http"
	"strings"
)

// declaresTrailer reports whether a header declares a trailer field.
func declaresTrailer(h http.Header, field string) bool {
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if isField(name, field) {
				return true
			}
		}
	}
	return false
}

// hideTrailer removes the declaration of a trailer field from a header.
func hideTrailer(h http.Header, field string) {
	var others []string
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if !isField(name, field) {
				others = append(others, strings.TrimSpace(name))
			}
		}
	}
	delete(h, "Trailer")
	if len(others) > 0 {
		h["Trailer"] = []string{strings.Join(others, ", ")}
	}
}

func isField(name, field string) bool {
	return http.CanonicalHeaderKey(strings.TrimSpace(name)) == field
}

// isUndeclared reports whether a handler sets a trailer field that it has not declared under a key.
func isUndeclared(key, field string) bool {
	name, ok := strings.CutPrefix(key, http.TrailerPrefix)
	return ok && isField(name, field)
}
