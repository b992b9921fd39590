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

// maxJWT is the length of the longest bearer token that is decoded.
const maxJWT = 8 << 10

type claimsKey struct{}

// ContextWithClaims returns a context with the claims of the request's token, for rules with
// jwt: keys. It is for the handler that checks the token's signature, which must come
// before the Middleware. Claims that are strings, numbers or booleans can be used.
func ContextWithClaims(ctx context.Context, claims map[string]any) context.Context {
	return context.WithValue(ctx, claimsKey{}, claims)
}

func claimsFrom(r *http.Request) map[string]any {
	claims, _ := r.Context().Value(claimsKey{}).(map[string]any)
	return claims
}

// unverified decodes the claims of the request's bearer token, whoever signed it.
func unverified(r *http.Request) map[string]any {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > maxJWT {
		return nil
	}
	parts := strings.Split(strings.Trim(token, " "), ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // 12345678901234567890 is an id, and no float64
	var claims map[string]any
	if d.Decode(&claims) != nil {
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return claims
}

// claimText returns a claim as text, and "" if it has none that means one value. What
// counts is the kind: a program may have types of its own for plans and numbers, and a
// claim that was overlooked would be a rule that does not apply.
func claimText(v any) string {
	switch x := reflect.ValueOf(v); {
	case x.Kind() == reflect.String:
		return x.String()
	case x.Kind() == reflect.Bool:
		return strconv.FormatBool(x.Bool())
	case x.CanInt():
		return strconv.FormatInt(x.Int(), 10)
	case x.CanUint():
		return strconv.FormatUint(x.Uint(), 10)
	case x.CanFloat():
		return strconv.FormatFloat(x.Float(), 'f', -1, x.Type().Bits())
	}
	return ""
}
