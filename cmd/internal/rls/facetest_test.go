package rls

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
)

// The service limits as a policy does whose rules are descriptors of header fields. The test is the
// Envoy that makes the descriptors.
func TestFace(t *testing.T) {
	facetest.Run(t, facetest.Face{Redis: true, Open: func(
		t *testing.T, policy, redis string,
	) func(facetest.Request) facetest.Answer {
		rules, tree := descriptorsOf(t, policy)
		if tree == "" {
			return nil
		}
		store := func(*Config) {}
		if redis != "" {
			store = shared(t, redis, "error")
		}
		s, _ := newService(t, tree, store, func(c *Config) { c.Fields = FieldsAll })
		return func(r facetest.Request) facetest.Answer {
			q := request(0)
			for _, rule := range rules {
				if len(rule.Keys) == 0 || r.Header.Get(field(rule)) != "" {
					q.Descriptors = append(q.Descriptors,
						descriptor(rule.Name+"="+r.Header.Get(field(rule))))
				}
			}
			a := facetest.Answer{Status: http.StatusOK, Header: http.Header{}}
			if len(q.Descriptors) == 0 { // Envoy does not ask
				return a
			}
			answer := send(t, s, q)
			if answer.OverallCode == ratelimit.RateLimitResponse_OVER_LIMIT {
				a.Status = http.StatusTooManyRequests
			}
			for _, h := range answer.ResponseHeadersToAdd {
				a.Header.Set(h.Key, h.Value)
			}
			return a
		}
	}})
}

// descriptorsOf returns the rules of a policy and their descriptors, or nothing if a rule has more
// than a field for a key, a limit and the mode.
func descriptorsOf(t *testing.T, policy string) (rules []*httplimit.Rule, tree string) {
	p, err := httplimit.ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Sets {
		for r := range p.Sets[i].All() {
			plain := len(r.Match)+len(r.Tiers.Limits)+len(r.Priority.Keep) == 0 &&
				r.OnMissing == httplimit.Skip && len(p.Except) == 0 && r.MaxDelay+r.Block == 0 &&
				reflect.DeepEqual(r.Cost, httplimit.Cost{}) &&
				(len(r.Keys) == 0 || field(r) != "")
			if !plain || !reflect.DeepEqual(p.Sets[i].Selector, httplimit.Selector{}) {
				return nil, ""
			}
			rules = append(rules, r)
			tree += fmt.Sprintf("- {key: %s, shadow_mode: %t, rate_limit: {unit: year,"+
				" requests_per_unit: 1, burst: %d}}\n", r.Name, r.Shadow, r.Limit.Capacity)
		}
	}
	return rules, tree
}

// field returns the field that is the key of a rule, or nothing.
func field(r *httplimit.Rule) string {
	name, isField := strings.CutPrefix(strings.Join(r.Keys, " "), "header:")
	if !isField {
		return ""
	}
	return name
}
