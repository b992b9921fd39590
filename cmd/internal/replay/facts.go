package replay

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// fact is a part of a request that rules may look at and that a log may not have.
type fact struct {
	name   string   // as in a policy
	fields []string // of a log that may have it
	first  int      // the index of the first of them in a record
	rule   string   // the first rule that looks at it, if there is one
	seen   uint64   // requests that have it
}

// value returns the value in the request line, or else of the first field that a request has.
func (f *fact) value(rec *accesslog.Record) []byte {
	var v []byte
	switch f.name {
	case "method":
		v = rec.Method
	case "header:Host":
		v = rec.Host
	case "path":
		v = rec.Path
	case "query":
		v = rec.Query
	}
	for i := 0; len(v) == 0 && i < len(f.fields); i++ {
		v = rec.Fields[f.first+i]
	}
	if len(v) > 0 {
		f.seen++
	}
	return v
}

// The facts of all policies come before the headers.
const (
	theMethod = iota
	theHost
	thePath
	theQuery
	theAddress
	headers
)

// newFacts returns the facts of a policy.
func newFacts(p *policy.Policy) []*fact {
	facts := []*fact{
		{name: "method"}, {name: "header:Host"}, {name: "path"},
		{name: "query"}, {name: "ip:address"},
	}
	for _, s := range p.Sets {
		for r := range s.All() {
			for _, key := range looksAt(s, r) {
				facts = addFact(facts, key, r.Name)
			}
		}
	}
	return facts
}

// looksAt returns what a rule and its set look at, as keys.
func looksAt(s policy.RuleSet, r *policy.Rule) []string {
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
	return keys
}

// addFact adds what a rule looks at for a key.
func addFact(facts []*fact, key, rule string) []*fact {
	kind, name, _ := strings.Cut(key, ":")
	switch kind {
	case "query":
		key = kind
	case "ip":
		key = "ip:address"
	case "jwt":
		key = "header:Authorization"
	case "header":
		key = "header:" + http.CanonicalHeaderKey(name)
	}
	i := slices.IndexFunc(facts, func(f *fact) bool { return f.name == key })
	if header, is := strings.CutPrefix(key, "header:"); is && i < 0 {
		variable := "http_" + strings.ToLower(strings.ReplaceAll(header, "-", "_"))
		i, facts = len(facts), append(facts, &fact{
			name: key, fields: []string{"request.headers." + header, variable},
		})
	}
	if i >= 0 { // it is not a fixed cost
		facts[i].rule = cmp.Or(facts[i].rule, rule)
	}
	return facts
}

// place returns the fields of the facts that a rule looks at, which find theirs there.
func place(facts []*fact) (fields []string) {
	for _, f := range facts {
		if f.rule == "" {
			f.fields = nil
		}
		f.first = len(fields)
		fields = append(fields, f.fields...)
	}
	return fields
}
