package replay

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// fact is a part of a request that rules look at and that a log may not have.
type fact struct {
	name   string   // as in a policy: ip:address, method, path, query or header:<name>
	rules  []string // that look at it
	fields []string // of a log that may have it
	first  int      // the index of the first of them in a record
	seen   uint64   // requests that have it
}

// value returns the value in the request line, or else of the first field that a request has.
func (f *fact) value(inLine []byte, fields [][]byte) string {
	for _, v := range append([][]byte{inLine}, fields[f.first:f.first+len(f.fields)]...) {
		if len(v) > 0 {
			f.seen++
			return string(v)
		}
	}
	return ""
}

// facts are what the rules of a policy look at. The ones with a name are nil if no rule looks at
// them.
type facts struct {
	address, host, method, path, query *fact
	headers, all                       []*fact
}

// newFacts returns the facts of a policy.
func newFacts(p *httplimit.Policy) *facts {
	f := &facts{}
	for _, s := range p.Sets {
		for r := range s.All() {
			keys := append(slices.Clone(r.Keys), r.Cost.Source, r.Tiers.By)
			for key := range r.Match {
				keys = append(keys, key)
			}
			if len(s.Selector.Hosts) > 0 {
				keys = append(keys, "header:Host")
			}
			if len(s.Selector.Methods) > 0 {
				keys = append(keys, "method")
			}
			if s.Selector.PathExact != "" || s.Selector.PathPrefix != "" {
				keys = append(keys, "path")
			}
			for _, key := range keys {
				f.add(key, r.Name)
			}
		}
	}
	return f
}

// methodFields are the fields of logs that have the method.
var methodFields = []string{
	"request.method", "request_method", "method", "RequestMethod", "ClientRequestMethod",
	"httpRequest.requestMethod", "httpRequest.httpMethod", "httpMethod", "http.request.method",
	"cs-method", "req.method", "properties.httpMethod",
}

// add adds what a rule looks at for a key.
func (f *facts) add(key, rule string) {
	kind, name, _ := strings.Cut(key, ":")
	name = http.CanonicalHeaderKey(name)
	if kind == "jwt" {
		kind, name = "header", "Authorization"
	}
	var at *fact
	switch {
	case kind == "header" && name == "Host":
		at = f.named("header:Host")
		f.host = at
	case key == "method":
		at = f.named("method", methodFields...)
		f.method = at
	case key == "path":
		at = f.named("path")
		f.path = at
	case kind == "query":
		at = f.named("query", "cs-uri-query")
		f.query = at
	case kind == "ip":
		at = f.named("ip:address")
		f.address = at
	case kind == "header":
		variable := "http_" + strings.ToLower(strings.ReplaceAll(name, "-", "_"))
		at = f.named("header:"+name, "request.headers."+name, variable)
		if !slices.Contains(f.headers, at) {
			f.headers = append(f.headers, at)
		}
	default: // a fixed cost, or none
		return
	}
	if !slices.Contains(at.rules, rule) {
		at.rules = append(at.rules, rule)
	}
}

// named returns the fact of a name, and makes it if it is not there yet.
func (f *facts) named(name string, fields ...string) *fact {
	i := slices.IndexFunc(f.all, func(f *fact) bool { return f.name == name })
	if i < 0 {
		i = len(f.all)
		f.all = append(f.all, &fact{name: name, fields: fields})
	}
	return f.all[i]
}

// place returns the fields of all facts, which find theirs there.
func (f *facts) place() (fields []string) {
	for _, at := range f.all {
		at.first = len(fields)
		fields = append(fields, at.fields...)
	}
	return fields
}
