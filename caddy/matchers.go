package tokenbucket

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// matcherKey begins the key of a policy whose value is "true" or "false", as matchers of that name
// match the request or not.
const matcherKey = "matcher:"

// matcherErrorVar is the variable of a request with the error of a matcher that could not decide.
// Caddy handles it as an error of a handler.
const matcherErrorVar = "token_bucket.matcher_error"

// matchers are the matchers of a handler, by name.
type matchers map[string]caddyhttp.MatcherSets

// loadMatchers makes the matchers of a configuration.
func loadMatchers(ctx caddy.Context, raw map[string]caddyhttp.RawMatcherSets) (matchers, error) {
	m := matchers{}
	for name, sets := range raw {
		field := struct {
			Sets caddyhttp.RawMatcherSets `caddy:"namespace=http.matchers"`
		}{sets}
		loaded, err := ctx.LoadModule(&field, "Sets")
		var ready caddyhttp.MatcherSets
		if err == nil {
			err = ready.FromInterface(loaded)
		}
		if err != nil {
			return nil, fmt.Errorf("matchers %q: %w", name, err)
		}
		m[name] = ready
	}
	return m, nil
}

// extractor returns the function that reads a key that is not one of httplimit: the name of
// matchers, or text with placeholders. It returns nil if the key is neither.
func (m matchers) extractor(key string) (func(*http.Request) string, error) {
	name, isName := strings.CutPrefix(key, matcherKey)
	if !isName {
		return placeholders(key)
	}
	sets, ok := m[name]
	if !ok {
		return nil, nil
	}
	return func(r *http.Request) string {
		matches, err := sets.AnyMatchWithError(r)
		if err != nil {
			caddyhttp.SetVar(r.Context(), matcherErrorVar, err)
		}
		return strconv.FormatBool(matches)
	}, nil
}
