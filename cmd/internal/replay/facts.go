package replay

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// fact is a part of a request that rules look at and that a log may not have.
type fact struct {
	name  string   // as in a policy: ip:address, method, path, query or header:<name>
	rules []string // that look at it
	// fields are the fields of a log that may have it. They are at first and after in a record.
	fields []string
	first  int
	seen   uint64 // requests that have it
}

// value returns the value in the request line, or else of the first field that a request has.
func (f *fact) value(inLine []byte, fields [][]byte) string {
	if len(inLine) > 0 {
		f.seen++
		return string(inLine)
	}
	for _, v := range fields[f.first : f.first+len(f.fields)] {
		if len(v) > 0 {
			f.seen++
			return string(v)
		}
	}
	return ""
}

// facts are what the rules of a policy look at.
type facts struct {
	address, host, method, path, query *fact // nil if no rule looks at it
	headers                            []*fact
}

// newFacts returns the facts of a policy.
func newFacts(p *httplimit.Policy) *facts {
	f := &facts{}
	for _, s := range p.Sets {
		for r := range s.All() {
			if len(s.Selector.Hosts) > 0 {
				f.add("header:Host", r.Name)
			}
			if len(s.Selector.Methods) > 0 {
				f.add("method", r.Name)
			}
			if s.Selector.PathExact != "" || s.Selector.PathPrefix != "" {
				f.add("path", r.Name)
			}
			keys := append(slices.Clone(r.Keys), r.Cost.Source, r.Tiers.By)
			for key := range r.Match {
				keys = append(keys, key)
			}
			for _, key := range keys {
				f.add(key, r.Name)
			}
		}
	}
	return f
}

// add adds what a rule looks at for a key.
func (f *facts) add(key, rule string) {
	kind, name, _ := strings.Cut(key, ":")
	name = http.CanonicalHeaderKey(name)
	var at *fact
	switch {
	case kind == "header" && name == "Host":
		at = setFact(&f.host, "header:Host")
	case key == "method":
		at = setFact(&f.method, "method", "request.method", "request_method", "method",
			"RequestMethod", "ClientRequestMethod", "httpRequest.requestMethod",
			"httpRequest.httpMethod", "httpMethod", "http.request.method", "cs-method", "req.method",
			"properties.httpMethod")
	case key == "path":
		at = setFact(&f.path, "path")
	case kind == "query":
		at = setFact(&f.query, "query", "cs-uri-query")
	case kind == "header":
		at = f.header(name)
	case kind == "jwt":
		at = f.header("Authorization")
	case kind == "ip":
		at = setFact(&f.address, "ip:address")
	default: // a fixed cost, or none
		return
	}
	if !slices.Contains(at.rules, rule) {
		at.rules = append(at.rules, rule)
	}
}

// setFact makes the fact if it is not there yet.
func setFact(at **fact, name string, fields ...string) *fact {
	if *at == nil {
		*at = &fact{name: name, fields: fields}
	}
	return *at
}

// header returns the fact of a header field.
func (f *facts) header(name string) *fact {
	i := slices.IndexFunc(f.headers, func(h *fact) bool { return h.name == "header:"+name })
	if i >= 0 {
		return f.headers[i]
	}
	variable := "http_" + strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	h := &fact{name: "header:" + name, fields: []string{"request.headers." + name, variable}}
	f.headers = append(f.headers, h)
	return h
}

// all returns the facts that rules look at.
func (f *facts) all() []*fact {
	all := append([]*fact{f.address, f.host, f.method, f.path, f.query}, f.headers...)
	return slices.DeleteFunc(all, func(f *fact) bool { return f == nil })
}

// place places the fields behind others and returns them all.
func (f *facts) place(fields []string) []string {
	for _, at := range f.all() {
		at.first = len(fields)
		fields = append(fields, at.fields...)
	}
	return fields
}
