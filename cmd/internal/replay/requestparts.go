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
		case "header":
			key = "header:" + http.CanonicalHeaderKey(header)
		}
		i := slices.IndexFunc(parts, func(p *part) bool { return p.name == key })
		if i < 0 && kind == "header" {
			at, name := len(fields), strings.TrimPrefix(key, "header:")
			variable := "http_" + strings.ToLower(strings.ReplaceAll(name, "-", "_"))
			fields = append(fields, "request.headers."+name, variable)
			i, parts = len(parts), append(parts, &part{name: key,
				value: func(rec *accesslog.Record) []byte {
					if v := rec.Fields[at]; len(v) > 0 {
						return v
					}
					return rec.Fields[at+1]
				}})
		}
		if i >= 0 { // it is not a fixed cost
			parts[i].rule = cmp.Or(parts[i].rule, rule)
		}
	}
	for _, s := range p.Sets {
		for r := range s.All() {
			for _, key := range append(slices.Clone(r.Keys), r.Cost.Source, r.Tiers.By) {
				look(r.Name, key)
			}
			for key := range r.Match {
				look(r.Name, key)
			}
			if len(s.Selector.Hosts) > 0 {
				look(r.Name, "header:Host")
			}
			if len(s.Selector.Methods) > 0 {
				look(r.Name, "method")
			}
			if s.Selector.PathExact != "" || s.Selector.PathPrefix != "" {
				look(r.Name, "path")
			}
		}
	}
	return parts, fields
}
