package httplimit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
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
	return claims
}

// claimText returns a claim as text, and "" if it has none that means one value.
func claimText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}
