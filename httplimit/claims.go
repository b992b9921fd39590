package httplimit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

const maxJWT = 8 << 10

type claimsKey struct{}

// ContextWithClaims returns a context with the claims of the request's token, for rules with
// jwt: keys. It is for the handler that checks the signature of the token. That handler must run
// before Middleware. A claim can be used if it is a string, a number or a boolean.
func ContextWithClaims(ctx context.Context, claims map[string]any) context.Context {
	return context.WithValue(ctx, claimsKey{}, claims)
}

func contextClaims(r *http.Request) map[string]any {
	claims, _ := r.Context().Value(claimsKey{}).(map[string]any)
	return claims
}

// unverifiedClaims decodes the claims of a bearer token, the first of the values of Authorization.
// It does not check the signature.
func unverifiedClaims(values []string) map[string]any {
	if len(values) == 0 {
		return nil
	}
	words := strings.FieldsFunc(values[0], isBlank)
	if len(words) != 2 || !strings.EqualFold(words[0], "Bearer") || len(words[1]) > maxJWT {
		return nil
	}
	parts := strings.Split(words[1], ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // a float64 cannot hold an id such as 12345678901234567890
	var claims map[string]any
	if d.Decode(&claims) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return claims
}

// claimText returns a claim as text, or "" if it is not a string, number or boolean. It uses
// reflection, because an application may have its own types for claims. If such a claim were
// missing, rules would not apply.
func claimText(v any) string {
	switch x := reflect.ValueOf(v); {
	case x.Kind() == reflect.String:
		if n, ok := v.(json.Number); ok {
			return numberText(string(n))
		}
		return x.String()
	case x.Kind() == reflect.Bool:
		return strconv.FormatBool(x.Bool())
	case x.CanInt():
		return strconv.FormatInt(x.Int(), 10)
	case x.CanUint():
		return strconv.FormatUint(x.Uint(), 10)
	case x.CanFloat():
		return numberText(strconv.FormatFloat(x.Float(), 'f', -1, x.Type().Bits()))
	}
	return ""
}

// numberText returns one text for the spellings of a number in JSON: 1000 for 1e3 and 1000.0. Only
// whole numbers that are spelled in digits have more digits than a float64.
func numberText(n string) string {
	switch f, err := strconv.ParseFloat(n, 64); {
	case err != nil:
		return n
	case f == 0:
		return "0"
	case strings.ContainsAny(n, ".eE"):
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return n
}
