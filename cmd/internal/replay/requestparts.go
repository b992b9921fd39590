package replay

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// part is a part of a request that rules may look at and that a log may not have.
type part struct {
	name  string // as in a policy
	value func(rec *accesslog.Record) []byte
	rule  string // the first rule that looks at it, if there is one
	seen  uint64 // requests that have it
}

// The parts that all policies have come before the headers.
const (
	theMethod = iota
	theHost
	thePath
	theQuery
	theAddress
	theStatus
	headers
)

// newParts returns what the rules of a policy look at, and the fields of a log that may have it.
func newParts(p *policy.Policy) (parts []*part, fields []string) {
	parts = []*part{
		theMethod:  {name: "method", value: func(rec *accesslog.Record) []byte { return rec.Method }},
		theHost:    {name: "header:Host", value: func(rec *accesslog.Record) []byte { return rec.Host }},
		thePath:    {name: "path", value: func(rec *accesslog.Record) []byte { return rec.Path }},
		theQuery:   {name: "query", value: func(rec *accesslog.Record) []byte { return rec.Query }},
		theAddress: {name: "ip:address", value: func(*accesslog.Record) []byte { return nil }},
		theStatus: {name: "response:status",
			value: func(rec *accesslog.Record) []byte { return rec.Status }},
	}
	look := func(rule, key string) {
		kind, header, _ := strings.Cut(key, ":")
		switch kind {
		case "query":
			key = kind
		case "ip":
			key = "ip:address"
		case "jwt":
			kind, key = "header", "header:Authorization"
		case "cookie":
			kind, key = "header", "header:Cookie"
		case "header":
			key = "header:" + http.CanonicalHeaderKey(header)
		}
		i := slices.IndexFunc(parts, func(p *part) bool { return p.name == key })
		if i < 0 && kind == "header" {
			at, name := len(fields), strings.TrimPrefix(key, "header:")
			variable := "http_" + strings.ToLower(strings.ReplaceAll(name, "-", "_"))
			name = "request.headers." + name
			fields = append(fields, name+"[*]", name, variable)
			i, parts = len(parts), append(parts, &part{name: key,
				value: func(rec *accesslog.Record) []byte {
					return accesslog.First(rec.Fields[at : at+3]...)
				}})
		}
		if i >= 0 { // it is not a fixed cost
			parts[i].rule = cmp.Or(parts[i].rule, rule)
		}
	}
	for _, s := range p.Sets {
		for r := range s.All() {
			keys := append(slices.Clone(r.Keys), r.Cost.Source, r.Tiers.By, r.Priority.By)
			for key := range r.Match {
				keys = append(keys, key)
			}
			keys = append(keys, picksBy(s.Selector)...)
			for _, e := range slices.Concat(p.Except, r.Except) {
				keys = append(keys, picksBy(e.Selector)...)
				if len(e.Networks) > 0 {
					keys = append(keys, "ip:address")
				}
			}
			for _, key := range keys {
				look(r.Name, key)
			}
		}
	}
	return parts, fields
}

// picksBy returns what a selector looks at, as keys.
func picksBy(s policy.Selector) (keys []string) {
	if len(s.Hosts) > 0 {
		keys = append(keys, "header:Host")
	}
	if len(s.Methods) > 0 {
		keys = append(keys, "method")
	}
	if s.PathExact != "" || s.PathPrefix != "" {
		keys = append(keys, "path")
	}
	return keys
}
